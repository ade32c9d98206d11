/**
 * The entry that would stand at `index` if `values` were sorted upwards; it reorders `values` on the way. Linear on average, also where
 * many entries are equal. Entries are numbers or infinities, never NaN. Source: Hoare, Algorithm 65: FIND.
 */
export function selectInPlace(values: Float64Array, index: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const pivot = values[(low + high) >> 1] as number;
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] as number) < pivot) left++;
      while ((values[right] as number) > pivot) right--;
      if (left > right) break;
      const swapped = values[left] as number;
      values[left++] = values[right] as number;
      values[right--] = swapped;
    }
    if (index <= right) high = right;
    else if (index >= left) low = left;
    else break;
  }
  return values[index] as number;
}

/** The entry of a list at an index that is known to exist. Loops over tokens read their arrays directly instead. @throws RangeError */
export function at<T>(list: readonly T[], index: number): T {
  const entry = list[index];
  if (entry === undefined) throw new RangeError(`no entry ${index} in a list of ${list.length}`);
  return entry;
}

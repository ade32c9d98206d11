import Table from 'cli-table3';

/** A table without colours and without rules between its rows; `aligned` says how its columns are, to the left unless said. */
export function tableOf(head: readonly string[], aligned: readonly Table.HorizontalAlignment[] = []): Table.Table {
  const noLines = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };
  return new Table({ head: [...head], colAligns: [...aligned], style: { head: [], border: [] }, chars: noLines });
}

/** Run ids become folder names and parts of workflow ids. */
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Ends of the ids of what runs start themselves: a run of such an id would stand in the way of the run that it seems to belong to. */
const PART_OF_A_RUN = /\.(?:step-\d{4,}|eval-[^.]+|warmup|checkpoints-[^.]+)$/;

/** Why this cannot be the id of a run; null when it can. */
export function runIdProblem(id: string): string | null {
  if (!RUN_ID.test(id)) return 'use up to 100 letters, digits, ".", "_" and "-", beginning with a letter or digit';
  const part = PART_OF_A_RUN.exec(id);
  return part && `"${part[0]}" at its end is how runs name their own parts: use another id`;
}

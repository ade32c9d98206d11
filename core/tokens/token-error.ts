/** What is wrong with token data; `code` is stable and meant for programs, the message for people. */
export type TokenErrorCode =
  | 'span_length_mismatch'
  | 'row_count_mismatch'
  | 'length'
  | 'missing_at_loss_position'
  | 'too_short'
  | 'no_advantages'
  | 'too_many_candidates'
  | 'bad_option'
  | 'corrupt_bytes'
  | 'foreign_sampler';

/** Token data that cannot be used as it is. `where` names the datum, span or blob. */
export class TokenError extends Error {
  readonly code: TokenErrorCode;
  readonly where: string;

  constructor(code: TokenErrorCode, where: string, message: string) {
    super(`${where}: ${message}`);
    this.name = 'TokenError';
    this.code = code;
    this.where = where;
  }
}

/** How errors and logs name a datum: `<trial>#<fragment>`. */
export function datumName(datum: { readonly trial: string; readonly fragment: number }): string {
  return `datum ${datum.trial}#${datum.fragment}`;
}

/** An entry of `added_tokens` in a tokenizer file. */
export type AddedToken = {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  /** The token swallows white space before or after it. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  /** Text is normalised before it is searched for the token. */
  readonly normalized: boolean;
};

/** A model's tokenizer as its own files define it. */
export interface Tokenizer {
  /** The model's repository or the folder that the files came from. */
  readonly name: string;
  /** Ids are 0 … size-1, added tokens included. */
  readonly size: number;
  readonly addedTokens: readonly AddedToken[];
  /** Adds nothing of its own (no BOS); the text of an added token becomes that token's id, as in every implementation. @throws TextTooLong */
  encode(text: string): Promise<Int32Array>;
  /** Text of ids, control tokens included; bytes that are no UTF-8 become U+FFFD. */
  decode(ids: Int32Array): Promise<string>;
  /** The id of one token by its text as the file writes it; undefined when there is none. */
  tokenId(content: string): number | undefined;
  /** The bytes that an id stands for: of a part of a character, only that part's. */
  bytesOf(id: number): Uint8Array;
}

/** A text that is not encoded, because it is longer than any context holds. */
export class TextTooLong extends Error {
  override readonly name = 'TextTooLong';
  readonly characters: number;
  constructor(characters: number) {
    super(`a text of ${characters} characters is too long to be encoded`);
    this.characters = characters;
  }
}

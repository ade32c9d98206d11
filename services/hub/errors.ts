/** A model's tokenizer files cannot be had here; the message says what was looked for, where, and what to do. */
export class ModelFilesUnavailable extends Error {
  override readonly name = 'ModelFilesUnavailable';
  readonly model: string;
  /** True when the same may work later, as it is: the hub could not be reached, or was busy. */
  readonly mayPass: boolean;

  constructor(model: string, message: string, options: { readonly mayPass?: boolean; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.model = model;
    this.mayPass = options.mayPass ?? false;
  }
}

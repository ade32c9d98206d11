type Saving = {
  readonly signal?: AbortSignal;
  /** 3600 .. 10 years; absent = kept for good. */
  readonly ttlSeconds?: number;
};

export type SaveOptions = Saving & { readonly userMetadata?: Readonly<Record<string, string>> };

export type EphemeralOptions = SaveOptions & {
  /**
   * `snapshot` (default): the weights stay as they are now. `inflight`: all inflight samplers of the model share weights that change
   * with each such save.
   */
  readonly kind?: 'snapshot' | 'inflight';
  /** Number of the sampling session in its session. Give a saved one to repeat the very same call after a crash; absent = the client's next. */
  readonly samplingSessionSeqId?: number;
};

export type ExternalOptions = Saving & {
  /** age public keys (at most 10) that the download is encrypted to; absent = not encrypted. */
  readonly ageRecipients?: readonly string[];
};

export type LoadOptions = {
  readonly signal?: AbortSignal;
  /** Restore the optimizer's moments too. */
  readonly optimizer: boolean;
  /** For state that another account shared. */
  readonly weightsAccessToken?: string;
};

export function wireSave({ ttlSeconds, userMetadata }: SaveOptions): object {
  return { ttl_seconds: ttlSeconds, user_metadata: userMetadata };
}

/** AdamW. The fields other than the rate have the protocol's defaults. */
export type AdamParams = {
  readonly optimizer?: 'adamw';
  readonly learningRate: number;
  /** Default 0.9. */
  readonly beta1?: number;
  /** Default 0.95. */
  readonly beta2?: number;
  /** Default 1e-12. */
  readonly eps?: number;
  /** Decoupled. Default 0. */
  readonly weightDecay?: number;
  /** Largest gradient norm; 0 (default) = no clipping. */
  readonly gradClipNorm?: number;
};

/** For models made with `optimizerType: 'dimuon'`. */
export type DimuonParams = {
  readonly optimizer: 'dimuon';
  readonly learningRate: number;
  /** Default 0.9. */
  readonly beta1?: number;
  /** Largest gradient norm; 0 (default) = no clipping. */
  readonly gradClipNorm?: number;
};

export type OptimizerParams = AdamParams | DimuonParams;
export type OptimizerType = 'adamw' | 'dimuon';

/** What `create_model` is told. */
export function wireOptimizerConfig(type: OptimizerType): object {
  return type === 'dimuon' ? { type, version: 1 } : { type };
}

/** The fields of `optim_step`. */
export function wireOptimizerParams(params: OptimizerParams): object {
  const gradClip = { grad_clip_norm: params.gradClipNorm ?? 0 };
  if (params.optimizer === 'dimuon') {
    const { learningRate, beta1 = 0.9 } = params;
    return { optimizer_params: { type: 'dimuon', learning_rate: learningRate, beta1, ...gradClip } };
  }
  const { learningRate, beta1 = 0.9, beta2 = 0.95, eps = 1e-12, weightDecay = 0 } = params;
  return { adam_params: { learning_rate: learningRate, beta1, beta2, eps, weight_decay: weightDecay, ...gradClip } };
}

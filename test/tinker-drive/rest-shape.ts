import type { Capabilities, Checkpoint, ModelInfo, TrainingRun, WeightsInfo } from '../../services/tinker/index.ts';

/** The same as `sdk-shape.ts` for what is not about tokens. */

export function capabilitiesShape({ supportedModels }: Capabilities) {
  return {
    supported_models: supportedModels.map((model) => ({
      model_name: model.modelName,
      max_context_length: model.maxContextLength,
      trainable: model.isTrainable,
      sampleable: model.isSampleable,
    })),
  };
}

export function infoShape(info: ModelInfo) {
  return {
    type: 'get_info',
    model_data: { arch: info.arch, model_name: info.baseModel, tokenizer_id: info.tokenizerId },
    model_id: info.modelId,
    optimizer_config: info.optimizerType && { type: info.optimizerType },
    is_lora: info.isLora,
    lora_rank: info.loraRank,
    model_name: info.baseModel,
  };
}

export function checkpointShape(checkpoint: Checkpoint) {
  return {
    checkpoint_id: checkpoint.id,
    checkpoint_type: checkpoint.type,
    time: checkpoint.savedAt,
    tinker_path: checkpoint.path,
    size_bytes: checkpoint.sizeBytes,
    public: checkpoint.isPublic,
    user_metadata: checkpoint.userMetadata,
    expires_at: checkpoint.expiresAt ?? null,
  };
}

export function runShape(run: TrainingRun) {
  return {
    training_run_id: run.id,
    base_model: run.baseModel,
    model_owner: run.owner,
    is_lora: run.isLora,
    corrupted: run.isCorrupted,
    lora_rank: run.loraRank,
    last_request_time: run.lastRequestAt,
    last_checkpoint: run.lastCheckpoint && checkpointShape(run.lastCheckpoint),
    last_sampler_checkpoint: run.lastSamplerCheckpoint && checkpointShape(run.lastSamplerCheckpoint),
    user_metadata: run.userMetadata,
  };
}

export function weightsShape(info: WeightsInfo) {
  return {
    base_model: info.baseModel,
    optimizer_config: info.optimizerType && { type: info.optimizerType },
    is_lora: info.isLora,
    lora_rank: info.loraRank,
    train_unembed: info.trainUnembed,
    train_mlp: info.trainMlp,
    train_attn: info.trainAttn,
  };
}

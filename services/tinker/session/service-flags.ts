import { DEFAULT_LIMITS } from '../back-pressure/back-pressure.ts';
import { clientConfigSchema, dynamicConfigSchema, tokenSchema } from '../futures/answers.ts';
import type { Call, Caller } from '../http/caller.ts';
import { ifSupported } from '../rest/request.ts';
import type { ChunkPolicy } from '../training/loss-call.ts';

/** How samples are asked for. */
export type SamplingFlags = {
  /** One long poll for all samples of a sampling session instead of one for each. */
  readonly useFeed: boolean;
  /** A sample that the service lost may be submitted again. */
  readonly mayResubmit: boolean;
  /** A sample is given up when nothing completes for `stalledMs`. */
  readonly mayStall: boolean;
  /** Abandoned samples may be cancelled; the service changes its mind while the client lives. */
  readonly mayCancel: () => boolean;
};

/**
 * What the service wants of its clients; what it does not say is the protocol's default. Not followed:
 * `sample_join_sampling_session` (the few clones here take a number at random),
 * `billing_exception_max_pause_duration_sec` (an unpaid bill is for a person), `custom_loss_server_side`, `sample_cancel_max_batch_size` (samples are cancelled one by one), `use_pyqwest_transport`.
 */
export type ServiceFlags = {
  readonly chunks: ChunkPolicy;
  readonly sampling: SamplingFlags;
};

type Config = ReturnType<typeof clientConfigSchema.parse>;
type DynamicConfig = ReturnType<typeof dynamicConfigSchema.parse>;

const DYNAMIC_TIMEOUT_MS = 10_000;
const LEAST_REFRESH_SECONDS = 10;
/** Node's timers fire at once for what is more than 24 days. */
const MOST_REFRESH_SECONDS = 86_400;

/** Asks when a client starts; on the way it trades the credential for a token where the service wants one. */
export async function readFlags(caller: Caller): Promise<ServiceFlags> {
  const config = (await ifSupported(caller.json(configCall(caller, 'client/config'), clientConfigSchema))) ?? {};
  if (config.pjwt_auth_enabled) await buyTokens(caller, config);
  const first = await ifSupported(caller.json(dynamicCall(caller, 'submit'), dynamicConfigSchema));
  let dynamic = first ?? {};
  if (first !== null) {
    refreshDynamic(caller, first, (latest) => {
      dynamic = latest;
    });
  }
  caller.holdBack({
    sampleDispatchBytes: config.sample_dispatch_bytes_semaphore_size ?? DEFAULT_LIMITS.sampleDispatchBytes,
    trainingDispatchBytes: config.fwdbwd_dispatch_bytes_semaphore_size ?? DEFAULT_LIMITS.trainingDispatchBytes,
    responseBytes: config.inflight_response_bytes_semaphore_size ?? DEFAULT_LIMITS.responseBytes,
    concurrentSamples: config.sample_max_concurrent_requests ?? DEFAULT_LIMITS.concurrentSamples,
  });
  return {
    chunks: {
      maxDatums: config.fwdbwd_max_chunk_len ?? 1024,
      maxBytes: config.fwdbwd_max_chunk_bytes_count ?? 5_000_000,
      parallel: config.parallel_fwdbwd_chunks ?? true,
      compress: config.proto_compress_fwdbwd ?? false,
    },
    sampling: {
      useFeed: config.sample_use_retrieve_futures ?? false,
      mayResubmit: !(config.sample_no_retries ?? false),
      mayStall: config.sample_enable_stuck_detection ?? true,
      mayCancel: () => dynamic.sample_cancel_enabled ?? false,
    },
  };
}

function buyTokens(caller: Caller, config: Config): Promise<void> {
  const exchange = { method: 'POST', path: 'auth/token', body: '{}', subject: 'other' } as const;
  const fromCommand = config.credential_default_source === 'credential_cmd';
  return caller.credential.useTokens(
    async (credential, isNeeded) => (await caller.json({ ...exchange, phase: isNeeded ? 'submit' : 'once', credential }, tokenSchema)).jwt,
    { fromCommand },
  );
}

/** Asks again from time to time, until the client is closed; a failure keeps the last values. It never keeps the process alive. */
function refreshDynamic(caller: Caller, first: DynamicConfig, adopt: (latest: DynamicConfig) => void): void {
  let timer: NodeJS.Timeout | undefined;
  const schedule = (latest: DynamicConfig) => {
    if (caller.isClosed) return;
    const seconds = Math.min(Math.max(latest.refresh_interval_sec ?? 300, LEAST_REFRESH_SECONDS), MOST_REFRESH_SECONDS);
    timer = setTimeout(() => refresh(latest), seconds * 1000);
    timer.unref();
  };
  const refresh = async (last: DynamicConfig) => {
    const latest = await caller.json(dynamicCall(caller, 'once'), dynamicConfigSchema).catch(() => last);
    adopt(latest);
    schedule(latest);
  };
  schedule(first);
  caller.onClose(() => clearTimeout(timer));
}

function configCall(caller: Caller, path: string): Call {
  return {
    method: 'POST',
    path,
    body: JSON.stringify({ sdk_version: caller.connection.protocolVersion }),
    phase: 'submit',
    subject: 'other',
  };
}

function dynamicCall(caller: Caller, phase: 'submit' | 'once'): Call {
  return { ...configCall(caller, 'client/dynamic_config'), timeoutMs: DYNAMIC_TIMEOUT_MS, phase };
}

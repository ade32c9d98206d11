/**
 * What harbor's environments and HTTP clients read from their process's environment, and so what a runner gets of its worker's. All else
 * stays with the worker.
 */
export const KNOWN_VARIABLES: readonly string[] = [
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'],
  ...['DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'DOCKER_CERT_PATH', 'DOCKER_TLS_VERIFY', 'DOCKER_API_VERSION'],
  ...['CONTAINER_HOST', 'CONTAINERS_CONF', 'CONTAINERS_STORAGE_CONF', 'XDG_RUNTIME_DIR', 'SINGULARITY_WORKDIR', 'KUBECONFIG'],
  ...['E2B_API_KEY', 'E2B_DOMAIN', 'E2B_API_URL', 'E2B_SANDBOX_URL', 'E2B_DEBUG'],
  ...['DAYTONA_API_KEY', 'DAYTONA_API_URL', 'DAYTONA_TARGET', 'DAYTONA_JWT_TOKEN', 'DAYTONA_ORGANIZATION_ID'],
  ...['MODAL_TOKEN_ID', 'MODAL_TOKEN_SECRET', 'MODAL_ENVIRONMENT', 'RUNLOOP_API_KEY'],
  ...['VERCEL_TOKEN', 'VERCEL_OIDC_TOKEN', 'VERCEL_TEAM_ID', 'VERCEL_PROJECT_ID', 'TENSORLAKE_API_KEY', 'NOVITA_API_KEY'],
  ...['NOVITA_DOMAIN', 'NOVITA_BASE_URL', 'NOVITA_API_URL', 'HYPERBROWSER_API_KEY', 'HYPERBROWSER_BASE_URL', 'KERNEL_API_KEY'],
  ...['ISLO_API_KEY', 'ISLO_API_URL', 'ISLO_COMPUTE_URL', 'OPENSANDBOX_API_KEY', 'OPENSANDBOX_DOMAIN', 'USE_COMPUTER_API_KEY'],
  ...['USE_COMPUTER_HOST', 'BEAM_TOKEN', 'RUNTA_TOKEN', 'RUNTA_CONFIG', 'SBX_TOKEN_FILE', 'SKYPILOT_API_SERVER_ENDPOINT'],
];

/** The service's key, and what else is the worker's alone or set for the runner by Stillroom: never passed, whoever asks for it. */
const NEVER =
  /^(TINKER_|TEMPORAL_|STILLROOM_)|^(HOME|PATH|LANG|PYTHONPATH|PYTHONHOME|PYTHONSTARTUP|PYTHONUNBUFFERED|LD_PRELOAD|HARBOR_TELEMETRY)$/;

const SECRET_NAME = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH/i;

/** A shorter value would be found in texts that have nothing to do with it. */
const MIN_SECRET_CHARS = 6;

export const mayBePassed = (name: string): boolean => !NEVER.test(name);

export type RunnerVariables = {
  readonly env: Readonly<Record<string, string>>;
  /** Values that must not be in anything which a trial leaves. */
  readonly secrets: readonly string[];
};

/** The variables of `from` that a runner gets: the known ones, and those that the settings name, all of which count as secret. */
export function runnerVariables(named: readonly string[], from: NodeJS.ProcessEnv): RunnerVariables {
  const wanted = new Set([...KNOWN_VARIABLES, ...named].filter(mayBePassed));
  const found = [...wanted].flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]] as const]));
  const secrets = found.flatMap(([name, value]) => (named.includes(name) || SECRET_NAME.test(name) ? [value] : passwordIn(value)));
  return { env: Object.fromEntries(found), secrets: secrets.filter((secret) => secret.length >= MIN_SECRET_CHARS) };
}

/** The password of an address such as a proxy's, as it is written there. */
function passwordIn(value: string): string[] {
  const [, password] = /^[a-z][a-z0-9+.-]*:\/\/[^/@:]*:([^/@]+)@/i.exec(value) ?? [];
  return password === undefined ? [] : [password];
}

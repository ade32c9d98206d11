/** What each code of Node and undici means for somebody who has only called this client. */
const WORDS: Readonly<Record<string, string>> = {
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'the answer stopped in the middle',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  ETIMEDOUT: 'no connection in time',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed',
  EPIPE: 'connection closed',
  UND_ERR_SOCKET: 'connection closed',
  UND_ERR_CLOSED: 'connection closed',
  UND_ERR_DESTROYED: 'connection closed',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found',
  EHOSTUNREACH: 'host not reachable',
  ENETUNREACH: 'host not reachable',
};

/** Why there was no HTTP answer. What has no words here keeps its own; `host` is named where nothing there was reached. */
export function inPlainWords(error: unknown, host: string): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  const words = WORDS[code];
  if (words === undefined) return error.message || code;
  return words === 'connection refused' || words.startsWith('host') ? `${words}: ${host}` : words;
}

/** Several addresses tried and refused come as an AggregateError without a message. */
function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.name;
}

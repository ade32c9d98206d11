import { S3Client } from '@aws-sdk/client-s3';

/** The place or the credentials of an S3 store that the settings and the environment do not give; says what to set. */
export class S3SettingsMissing extends Error {
  readonly exitCode = 2;
  override readonly name = 'S3SettingsMissing';
}

/** Where an S3-speaking server is; null leaves it to the environment. */
export type S3Server = { readonly endpoint: string | null; readonly region: string | null };

type Variables = Readonly<Record<string, string | undefined>>;

/** Tries of one request, with growing pauses: about a minute of a server that is away. */
const MAX_ATTEMPTS = 8;

/** A client by the settings, with credentials from the environment. @throws S3SettingsMissing */
export function s3Client({ endpoint: given, region }: S3Server, variables: Variables = process.env): S3Client {
  const endpoint = given ?? variables.AWS_ENDPOINT_URL_S3 ?? variables.AWS_ENDPOINT_URL ?? null;
  if (endpoint !== null && /\/\/[^/]*@/.test(endpoint))
    throw new S3SettingsMissing('the endpoint of the blob store holds a user or password: give them by the AWS_… variables only');
  return new S3Client({
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    region: region ?? variables.AWS_REGION ?? variables.AWS_DEFAULT_REGION ?? regionWithout(endpoint),
    ...credentials(variables),
    maxAttempts: MAX_ATTEMPTS,
    retryMode: 'standard',
    // A connection that is cut without a word must end: the library then asks again.
    requestHandler: { connectionTimeout: 5_000, socketTimeout: 30_000 },
  });
}

/** Servers of one's own have no regions, but the signature names one. */
function regionWithout(endpoint: string | null): string {
  if (endpoint !== null) return 'us-east-1';
  throw new S3SettingsMissing(
    'the blob store is on S3, but nothing says in which region: set blobStoreRegion in temporal.config.json, or AWS_REGION',
  );
}

/** Keys, or the variables from which the library gets short-lived ones by itself. Files in the home directory are not read. */
function credentials(variables: Variables) {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: sessionToken } = variables;
  if (accessKeyId && secretAccessKey) return { credentials: { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) } };
  if (!accessKeyId && !secretAccessKey && SHORT_LIVED.some((name) => variables[name])) return {};
  throw new S3SettingsMissing(
    `the blob store is on S3, but the environment has no credentials for it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or one of ${SHORT_LIVED.join(', ')}`,
  );
}

const SHORT_LIVED = ['AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_CONTAINER_CREDENTIALS_FULL_URI', 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'];

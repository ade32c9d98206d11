import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { s3Python } from './python.ts';

export type S3Server = AsyncDisposable & {
  readonly endpoint: string;
  /** The standard variables with which a client of this server finds its credentials. */
  readonly env: Readonly<Record<string, string>>;
};

const CREDENTIALS = { accessKeyId: 'stillroom', secretAccessKey: 'only-on-this-machine' };
export const S3_ENV = { AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId, AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey };

/** Starts an S3-speaking server on this machine with one empty bucket; it keeps everything in memory and ends with us. */
export async function startS3Server(bucket: string, { conditionalWrites = true } = {}): Promise<S3Server> {
  const script = fileURLToPath(new URL('./serve.py', import.meta.url));
  const child = spawn(await s3Python(), [script, ...(conditionalWrites ? [] : ['unconditional'])], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the S3 server ended before it said its port');
  });
  const [port] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string];
  ended.catch(() => {});
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: CREDENTIALS });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  return {
    endpoint,
    env: S3_ENV,
    [Symbol.asyncDispose]: async () => {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    },
  };
}

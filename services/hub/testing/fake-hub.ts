import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** For tests: a hub at a real socket, with the files of one repository's state, as the hub's client asks for them. */

export const COMMIT = 'c'.repeat(40);

export type FakeHub = AsyncDisposable & {
  readonly url: string;
  /** `METHOD path` of each request, and the `authorization` it carried. */
  readonly seen: { readonly line: string; readonly authorization: string | undefined }[];
  /** Answers every request with this status instead. */
  status: number | null;
  /** Breaks a file's connection off half way. */
  breakOff: string | null;
  /** Sends another content of the same length for this file. */
  alter: string | null;
};

type Files = Readonly<Record<string, string>>;

export async function fakeHub(repo: string, files: Files, { lfs = ['tokenizer.json'] }: { readonly lfs?: readonly string[] } = {}) {
  const hub = { seen: [] as FakeHub['seen'], status: null as number | null, breakOff: null as string | null, alter: null as string | null };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '/', 'http://hub');
    hub.seen.push({ line: `${request.method} ${pathname}`, authorization: request.headers.authorization });
    if (hub.status !== null) return json(response, hub.status, { error: 'as scripted' });
    if (pathname.startsWith(`/api/models/${repo}/revision/`)) return json(response, 200, { id: repo, sha: COMMIT, lastModified: 0 });
    if (pathname === `/api/models/${repo}/paths-info/${COMMIT}`) {
      const { paths } = JSON.parse(await bodyOf(request)) as { paths: string[] };
      return json(
        response,
        200,
        paths.flatMap((path) => (path in files ? [listed(path, files[path] ?? '', lfs.includes(path))] : [])),
      );
    }
    const name = pathname.startsWith(`/${repo}/resolve/${COMMIT}/`) ? (pathname.split('/').at(-1) ?? '') : '';
    const content = files[name];
    return content === undefined ? json(response, 404, { error: 'Not Found' }) : file(request, response, name, content);
  };
  const file = (request: IncomingMessage, response: ServerResponse, name: string, content: string) => {
    const bytes = Buffer.from(hub.alter === name ? content.replace(/./, '?') : content);
    const headers = { etag: '"e"', 'x-repo-commit': COMMIT, 'accept-ranges': 'bytes' };
    if (request.headers.range === 'bytes=0-0') {
      response.writeHead(206, { ...headers, 'content-range': `bytes 0-0/${bytes.length}`, 'content-length': 1 });
      return response.end(bytes.subarray(0, 1));
    }
    response.writeHead(200, { ...headers, 'content-length': bytes.length });
    if (hub.breakOff !== name) return response.end(bytes);
    response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
    return response;
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const fake: FakeHub = Object.assign(hub, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
  return fake;
}

function listed(path: string, content: string, isLfs: boolean) {
  const bytes = Buffer.from(content);
  const git = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const base = { type: 'file', path, size: bytes.length };
  return isLfs
    ? { ...base, oid: 'f'.repeat(40), lfs: { oid: sha256, size: bytes.length, pointerSize: 130 }, xetHash: 'a'.repeat(64) }
    : { ...base, oid: git };
}

function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

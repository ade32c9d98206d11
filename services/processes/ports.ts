import { createConnection, createServer, type Server } from 'node:net';

/** The address that everything of ours listens on: this machine only. */
export const LOOPBACK = '127.0.0.1';

/** A port that somebody else listens on. A person chooses another one, so the command ends with exit code 2. */
export class PortBusy extends Error {
  readonly port: number;
  readonly exitCode = 2;

  /** `use` says what the port is for, `option` what chooses another, e.g. `--port`. */
  constructor(port: number, use: string, option: string) {
    super(
      `port ${port} (${use}) is in use on this machine. Choose another with ${option} PORT, or end the process that holds it ` +
        `(it is named by \`lsof -nP -iTCP:${port} -sTCP:LISTEN\`).`,
    );
    this.name = 'PortBusy';
    this.port = port;
  }
}

/** Fails with PortBusy when `port` cannot be listened on. */
export async function requireFreePort(port: number, use: string, option: string): Promise<void> {
  if (!(await isFree(port))) throw new PortBusy(port, use, option);
}

/**
 * True when nobody listens on the port. Both questions are needed: on macOS one may bind 127.0.0.1 while another process
 * listens on all addresses, and a listener with a full backlog does not answer.
 */
export async function isFree(port: number): Promise<boolean> {
  return !(await answers(port)) && (await canListen(port));
}

/** True when something accepts connections on the port. */
export function answers(port: number, host = LOOPBACK): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host, timeout: 1_000 });
    const end = (accepted: boolean) => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
}

async function canListen(port: number): Promise<boolean> {
  const server = await listen(port).catch(() => null);
  if (server === null) return false;
  await close(server);
  return true;
}

/** `count` different ports that are free now, chosen by the system. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0)));
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the system gave no TCP port');
    return address.port;
  });
  await Promise.all(servers.map(close));
  return ports;
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: LOOPBACK }, () => resolve(server));
  });
}

const close = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()));

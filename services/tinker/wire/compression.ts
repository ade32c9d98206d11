import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';

const compressAsync = promisify(zstdCompress);
const decompressAsync = promisify(zstdDecompress);

/** A zstd frame at the default level. It carries its content size: services reserve their memory by it. */
export function compressBody(bytes: Uint8Array): Promise<Uint8Array> {
  return compressAsync(bytes, { pledgedSrcSize: bytes.byteLength });
}

/** @throws Error when it is no zstd frame, or when it grows beyond `maxBytes` */
export function decompressBody(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  return decompressAsync(bytes, { maxOutputLength: maxBytes });
}

import { TokenError } from './token-error.ts';

/**
 * A blob of typed columns: magic (4 ASCII bytes), version (u32), checksum (u32), header length (u32), the header as UTF-8 JSON padded with
 * spaces to a multiple of 8, then the columns one after another, each padded to 8 bytes. Little-endian throughout, as every machine Node
 * runs on is. The header's `columns` give type and length of each column, in order.
 */
type Column = Int32Array | Float64Array | Uint8Array;
const TYPES = { i32: Int32Array, f64: Float64Array, u8: Uint8Array } as const;
type TypeName = keyof typeof TYPES;
type Header<Meta> = { readonly meta: Meta; readonly columns: readonly (readonly [TypeName, number])[] };

const PREFIX_BYTES = 16;

export function packColumns(magic: string, version: number, meta: unknown, columns: readonly Column[]): Uint8Array {
  const header = { meta, columns: columns.map((column) => [typeName(column), column.length]) };
  const headerBytes = padHeader(new TextEncoder().encode(JSON.stringify(header)));
  const size = columns.reduce((sum, column) => sum + align(column.byteLength), PREFIX_BYTES + headerBytes.length);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < 4; i++) bytes[i] = magic.charCodeAt(i);
  view.setUint32(4, version, true);
  view.setUint32(12, headerBytes.length, true);
  bytes.set(headerBytes, PREFIX_BYTES);
  let offset = PREFIX_BYTES + headerBytes.length;
  for (const column of columns) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), offset);
    offset += align(column.byteLength);
  }
  view.setUint32(8, checksum(bytes), true);
  return bytes;
}

/** Reads what `packColumns` wrote. @throws TokenError `corrupt_bytes` when anything does not add up; `what` names the blob's kind. */
export function unpackColumns<Meta>(magic: string, version: number, what: string, input: Uint8Array): { meta: Meta; columns: Column[] } {
  const fail = (message: string): never => {
    throw new TokenError('corrupt_bytes', what, `${message}; the blob cannot be read`);
  };
  if (input.length < PREFIX_BYTES) fail(`${input.length} bytes are less than a header`);
  const bytes = input.byteOffset % 8 === 0 ? input : input.slice();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = String.fromCharCode(...bytes.subarray(0, 4));
  if (found !== magic) fail(`it starts with ${JSON.stringify(found)} instead of ${JSON.stringify(magic)}`);
  if (view.getUint32(4, true) !== version) fail(`its version is ${view.getUint32(4, true)}, this program reads version ${version}`);
  const headerLength = view.getUint32(12, true);
  if (bytes.length % 8 !== 0 || headerLength % 8 !== 0 || PREFIX_BYTES + headerLength > bytes.length) fail('it is cut off');
  if (view.getUint32(8, true) !== checksum(bytes)) fail('its checksum does not match');
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + headerLength))) as Header<Meta>;
  let offset = bytes.byteOffset + PREFIX_BYTES + headerLength;
  const columns = header.columns.map(([type, length]) => {
    const column = new TYPES[type](bytes.buffer as ArrayBuffer, offset, length);
    offset += align(column.byteLength);
    return column;
  });
  if (offset !== bytes.byteOffset + bytes.length) fail('its columns do not fill it');
  return { meta: header.meta, columns };
}

function typeName(column: Column): TypeName {
  if (column instanceof Int32Array) return 'i32';
  return column instanceof Float64Array ? 'f64' : 'u8';
}

function align(byteLength: number): number {
  return (byteLength + 7) & ~7;
}

function padHeader(json: Uint8Array): Uint8Array {
  const padded = new Uint8Array(align(json.length)).fill(0x20);
  padded.set(json);
  return padded;
}

/** 32-bit mix over all words but the checksum itself. It guards against damage, not against intent: content addresses do that. */
function checksum(bytes: Uint8Array): number {
  const words = new Int32Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length >> 2);
  let hash = words.length;
  for (let i = 0; i < words.length; i++) {
    if (i === 2) continue;
    hash = Math.imul(hash ^ (words[i] as number), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}

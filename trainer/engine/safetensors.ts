import { z } from 'zod';

/** A float32 tensor; `values.length` is the product of `dims`. */
export type Tensor = { readonly dims: readonly number[]; readonly values: Float32Array };
export type TensorFile = { readonly tensors: ReadonlyMap<string, Tensor>; readonly metadata: Readonly<Record<string, string>> };

const headerSchema = z.object({ __metadata__: z.record(z.string(), z.string()).optional() }).catchall(
  z.object({
    dtype: z.literal('F32', { error: 'only F32 tensors are supported' }),
    shape: z.array(z.int().nonnegative()),
    data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
  }),
);

/** Bytes of a safetensors file: length of the header, JSON header (padded to 8), tensors in map order, little-endian. */
export const writeSafetensors = (file: TensorFile): Uint8Array => {
  const header: Record<string, unknown> = {};
  if (Object.keys(file.metadata).length > 0) header.__metadata__ = file.metadata;
  let end = 0;
  for (const [name, tensor] of file.tensors) {
    header[name] = { dtype: 'F32', shape: tensor.dims, data_offsets: [end, end + tensor.values.length * 4] };
    end += tensor.values.length * 4;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const headerBytes = (json.length + 7) & ~7;
  const bytes = new Uint8Array(8 + headerBytes + end);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(headerBytes), true);
  bytes.fill(0x20, 8, 8 + headerBytes);
  bytes.set(json, 8);
  let at = 8 + headerBytes;
  for (const { values } of file.tensors.values()) {
    for (let i = 0; i < values.length; i++, at += 4) view.setFloat32(at, values[i] as number, true);
  }
  return bytes;
};

/** Reads what `writeSafetensors` (or any F32 safetensors writer) made. `source` names the file in errors. */
export const readSafetensors = (bytes: Uint8Array, source: string): TensorFile => {
  const refuse = (why: string): never => {
    throw new Error(`${source}: ${why}`);
  };
  if (bytes.length < 8) refuse('not a safetensors file, it is shorter than 8 bytes');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerBytes = Number(view.getBigUint64(0, true));
  if (headerBytes > bytes.length - 8) refuse(`not a safetensors file, its header would take ${headerBytes} bytes`);
  const { __metadata__: metadata = {}, ...entries } = parseHeader(new TextDecoder().decode(bytes.subarray(8, 8 + headerBytes)), refuse);
  const tensors = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries(entries)) {
    const [start, end] = entry.data_offsets;
    const length = entry.shape.reduce((product, size) => product * size, 1);
    if (end - start !== length * 4) refuse(`tensor ${name} has ${end - start} bytes for shape [${entry.shape.join(', ')}]`);
    if (8 + headerBytes + end > bytes.length) refuse(`tensor ${name} ends behind the end of the file; it is cut off`);
    const values = new Float32Array(length);
    for (let i = 0; i < length; i++) values[i] = view.getFloat32(8 + headerBytes + start + i * 4, true);
    tensors.set(name, { dims: entry.shape, values });
  }
  return { tensors, metadata };
};

const parseHeader = (json: string, refuse: (why: string) => never): z.infer<typeof headerSchema> => {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return refuse('not a safetensors file, its header is not JSON');
  }
  const parsed = headerSchema.safeParse(value);
  return parsed.success ? parsed.data : refuse(`bad safetensors header: ${z.prettifyError(parsed.error)}`);
};

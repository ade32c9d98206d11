/**
 * Writes one protobuf message without copying what is in it twice. A generated encoder copies the bytes of a nested field
 * once per level of nesting; here every field is first noted with its size, then all are written into one buffer of the
 * exact size.
 *
 * The wire format (https://protobuf.dev/programming-guides/encoding/): a field is a tag, `field number << 3 | wire type`,
 * followed by its value. Wire type 0 is a varint: seven bits a byte, least significant first, the top bit set on all but
 * the last; a negative number is its 64-bit two's complement and takes ten bytes. Wire type 1 is eight little-endian
 * bytes. Wire type 2 is a varint length and so many bytes: strings, bytes, messages, packed lists. A map is a repeated
 * message of key (1) and value (2).
 *
 * Fields stand in the order in which they are noted: note them by number and maps by sorted key, and equal messages have
 * equal bytes. proto3 leaves a field out that has its default; that is the caller's to decide, for a member of a oneof or
 * of a map entry is written even then.
 */
export class MessageWriter {
  #size = 0;
  readonly #writes: ((out: Output) => void)[] = [];

  /** int32, int64, uint32, bool and enum fields. @throws RangeError when it is no safe integer */
  integer(field: number, value: number): this {
    this.#tag(field, VARINT);
    return this.#add(varintSize(value), (out) => out.varint(value));
  }

  double(field: number, value: number): this {
    this.#tag(field, FIXED64);
    return this.#add(8, (out) => out.double(value));
  }

  string(field: number, value: string): this {
    const bytes = UTF8.encode(value);
    return this.bytes(field, bytes.byteLength, (target) => target.set(bytes));
  }

  /** `write` fills its target, which has `byteLength` bytes and begins anywhere in the message, aligned to nothing. */
  bytes(field: number, byteLength: number, write: (target: Uint8Array) => void): this {
    this.#length(field, byteLength);
    return this.#add(byteLength, (out) => write(out.take(byteLength)));
  }

  /** A packed list of integers; nothing when it is empty. @throws RangeError when one is no safe integer */
  packed(field: number, values: readonly number[]): this {
    if (values.length === 0) return this;
    const size = values.reduce((sum, value) => sum + varintSize(value), 0);
    this.#length(field, size);
    return this.#add(size, (out) => {
      for (const value of values) out.varint(value);
    });
  }

  /** `message` must be complete: what is noted in it afterwards breaks this one. */
  message(field: number, message: MessageWriter): this {
    this.#length(field, message.#size);
    return this.#add(message.#size, (out) => message.#writeTo(out));
  }

  finish(): Uint8Array<ArrayBuffer> {
    const out = new Output(this.#size);
    this.#writeTo(out);
    return out.bytes;
  }

  #tag(field: number, wireType: number): void {
    const tag = field * 8 + wireType;
    this.#add(varintSize(tag), (out) => out.varint(tag));
  }

  #length(field: number, byteLength: number): void {
    this.#tag(field, LENGTH_DELIMITED);
    this.#add(varintSize(byteLength), (out) => out.varint(byteLength));
  }

  #add(size: number, write: (out: Output) => void): this {
    this.#size += size;
    this.#writes.push(write);
    return this;
  }

  #writeTo(out: Output): void {
    for (const write of this.#writes) write(out);
  }
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const NEGATIVE_VARINT_BYTES = 10;
const UTF8 = new TextEncoder();

/** The buffer of a whole message and how far it is written. */
class Output {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;
  #at = 0;

  constructor(size: number) {
    // Every byte is written, so none needs to be zero before.
    this.bytes = new Uint8Array(Buffer.allocUnsafeSlow(size).buffer as ArrayBuffer, 0, size);
    this.#view = new DataView(this.bytes.buffer);
  }

  varint(value: number): void {
    if (value < 0) {
      this.#negativeVarint(value);
      return;
    }
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) this.bytes[this.#at++] = (rest % 0x80) | 0x80;
    this.bytes[this.#at++] = rest;
  }

  double(value: number): void {
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
  }

  take(byteLength: number): Uint8Array<ArrayBuffer> {
    const start = this.#at;
    this.#at += byteLength;
    return this.bytes.subarray(start, this.#at);
  }

  #negativeVarint(value: number): void {
    let rest = BigInt.asUintN(64, BigInt(value));
    for (; rest > 0x7fn; rest >>= 7n) this.bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
    this.bytes[this.#at++] = Number(rest);
  }
}

function varintSize(value: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no whole number that protobuf can carry here`);
  if (value < 0) return NEGATIVE_VARINT_BYTES;
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

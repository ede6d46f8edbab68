const utf8 = new TextEncoder();
const text = new TextDecoder();

/** Header maps as the filter sees them: in order, with repetitions. */
export type Headers = [name: string, value: string][];

/** As hosts hand a header map over: a count, the lengths of names and values, then these, each with a zero byte after it. */
export function encodePairs(headers: Headers): Uint8Array {
  const texts = headers.flat().map((item) => utf8.encode(item));
  const out = new Uint8Array(texts.reduce((sum, item) => sum + 5 + item.length, 4));
  const data = new DataView(out.buffer);
  data.setUint32(0, headers.length, true);
  let at = 4 + texts.length * 4;
  for (const [index, item] of texts.entries()) {
    data.setUint32(4 + index * 4, item.length, true);
    out.set(item, at);
    at += item.length + 1;
  }
  return out;
}

export function decodePairs(bytes: Uint8Array): Headers {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = data.getUint32(0, true);
  let at = 4 + count * 8;
  return Array.from({ length: count }, (_, index) => {
    const nameLength = data.getUint32(4 + index * 8, true);
    const valueLength = data.getUint32(8 + index * 8, true);
    const name = text.decode(bytes.subarray(at, at + nameLength));
    const value = text.decode(bytes.subarray(at + nameLength + 1, at + nameLength + 1 + valueLength));
    at += nameLength + valueLength + 2;
    return [name, value];
  });
}

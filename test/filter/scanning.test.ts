import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chat, cuts, json } from './body-documents.js';
import { expected } from './body-reference.js';
import { field, found, scan, scanner } from './body-scanner.js';

const utf8 = new TextEncoder();

describe('the body scanner', () => {
  it('finds what JSON.parse finds in any document, cut into any pieces', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          json,
          chat.map((value) => JSON.stringify(value)),
        ),
        cuts,
        (text, at) => {
          expect(found(utf8.encode(text), at)).toEqual(expected(text));
        },
      ),
      { numRuns: 4000 },
    );
  });

  it('takes for complete what JSON.parse takes, and nothing else, after any change to a document', () => {
    const change = fc.record({
      at: fc.nat(),
      cut: fc.nat(3),
      insert: fc.oneof(
        fc.constantFrom(
          '',
          '"',
          '\\',
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '-',
          '0',
          '.',
          'e',
          't',
          ' ',
          '\u0001',
          '\u007f',
          '\ufeff',
        ),
        fc.string({ maxLength: 2 }),
      ),
    });
    fc.assert(
      fc.property(json, fc.array(change, { minLength: 1, maxLength: 3 }), cuts, (text, changes, at) => {
        let changed = text;
        for (const { at: place, cut, insert } of changes) {
          const start = place % (changed.length + 1);
          changed = changed.slice(0, start) + insert + changed.slice(start + cut);
        }
        // What cannot be written in UTF-8 is not the scanner's to judge.
        fc.pre(!/\p{Surrogate}/u.test(changed));
        const result = found(utf8.encode(changed), at);
        const reference = expected(changed);
        if (reference) expect(result).toEqual(reference);
        else expect(result.complete).toBe(false);
      }),
      { numRuns: 6000 },
    );
  });

  it('agrees with JSON.parse on long texts with any escapes, right ones and wrong ones', () => {
    const piece = fc.oneof(
      {
        weight: 40,
        arbitrary: fc.constantFrom(...['a', 'é', '\\n', '\\"', '\\\\', '\\u00e9', '\\/', '\\t']),
      },
      { weight: 20, arbitrary: fc.nat(40).map((length) => 'text '.repeat(9).slice(0, length)) },
      { weight: 1, arbitrary: fc.constantFrom(...['"', '\\x', '\\u12g4', '\\u12', '\\', '\u0001', '\\\n']) },
    );
    fc.assert(
      fc.property(fc.array(piece, { size: 'max', maxLength: 60 }), cuts, (pieces, at) => {
        const text = `{"messages":"${pieces.join('')}","model":"m"}`;
        const result = found(utf8.encode(text), at);
        const reference = expected(text);
        if (reference) expect(result).toEqual(reference);
        else expect(result.complete).toBe(false);
      }),
      { numRuns: 6000 },
    );
  });

  it('never traps and never calls random bytes complete that JSON.parse refuses', () => {
    const byte = fc.oneof(
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom(...'{}[]",:\\tfn0-1.eE '.split('').map((c) => c.charCodeAt(0))),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 40 }), cuts, (bytes, at) => {
        const { complete } = found(Uint8Array.from(bytes), at);
        const text = String.fromCharCode(...bytes);
        expect(complete).toBe(expected(text) !== undefined);
      }),
      { numRuns: 4000 },
    );
  });

  it('knows only the keys of the body itself, not those of what is nested or quoted', () => {
    const decoys = [
      '{"x":{"model":"decoy"},"y":[{"model":"decoy"}],"z":"\\"model\\":\\"decoy\\"","model":"real"}',
      '{"model":"real","messages":[{"role":"user","content":"{\\"model\\":\\"decoy\\"}","model":"decoy"}]}',
      '{"mode":"decoy","model ":"decoy","Model":"decoy","model\\u0000":"decoy","model":"real"}',
      '{"model":"decoy","model":"real"}',
      '{"\\u006d\\u006Fdel":"re\\u0061l"}',
    ];
    for (const text of decoys)
      expect(found(utf8.encode(text)).texts.model).toBe(Buffer.from('real').toString('hex'));
    expect(found(utf8.encode('[{"model":"decoy"}]')).texts.model).toBeUndefined();
    for (const value of ['5', 'null', '{"a":1}', '["m"]', 'true']) {
      expect(found(utf8.encode(`{"model":"m","model":${value}}`)).texts.model).toBeUndefined();
    }
  });

  it('reads numbers however they are written, also in texts, and takes all that are very large for the same', () => {
    const numberOf = (text: string) =>
      found(utf8.encode(`{"max_tokens":${text}}`), [15, 16]).numbers.max_tokens;
    const largest = Number.MAX_SAFE_INTEGER;
    for (const text of [
      '0',
      '7',
      '4096',
      '1.0',
      '1e3',
      '12.5e+2',
      '5000E-1',
      '0.00301e5',
      '9007199254740991',
    ])
      expect([text, numberOf(text)]).toEqual([text, Number(text)]);
    expect(['1.9', '9.99e-1', '1e-308', '0e999', '0.0e0'].map(numberOf)).toEqual([1, 0, 0, 0, 0]);
    expect(numberOf(`1.${'0'.repeat(5_000)}1`)).toBe(1);
    expect(numberOf(`0.${'0'.repeat(5_000)}1e5003`)).toBe(100);
    for (const text of ['9007199254740992', '9'.repeat(5_000), '1e308', '1e999', '1e99999999999', '1.5e300'])
      expect([text, numberOf(text)]).toEqual([text, largest]);
    expect(['"7"', '"4096"', '"\\u0035"', `"${'9'.repeat(32)}"`].map(numberOf)).toEqual([
      7,
      4096,
      5,
      largest,
    ]);
    const none = [
      '-1',
      '-0',
      '-1e308',
      '""',
      '"-1"',
      '"1.0"',
      '" 1"',
      `"${'9'.repeat(33)}"`,
      'null',
      'true',
      '[1]',
    ];
    expect(none.map(numberOf)).toEqual(none.map(() => undefined));
    expect(found(utf8.encode('{"max_tokens":"7","max_tokens":"x"}')).numbers.max_tokens).toBeUndefined();
  });

  it('measures the bytes of the prompt as they stand in the body', () => {
    const value = '[{"role":"user","content":"héllo\\n"}]';
    const bytes = utf8.encode(`{"messages":[],"prompt":  "abc" ,"messages":\n${value} }`);
    const state = scan(bytes, [5, 30, 40]);
    expect(scanner.lengthOf!(state, field('MESSAGES'))).toBe(utf8.encode(value).length);
    expect(scanner.lengthOf!(state, field('PROMPT'))).toBe(5);
  });

  it('measures characters alike, whether they are spelled as escapes or not, however they are cut', () => {
    const word = fc.constantFrom('плита', '你好', 'é', '🙂🙂', '"', '\n', 'plain words ', 'x'.repeat(70));
    const words = fc.array(word, { maxLength: 40 }).map((all) => all.join(''));
    const measured = (json: string, at: readonly number[]) => {
      const state = scan(utf8.encode(json), at);
      const lengths = ['MESSAGES', 'INPUT', 'SYSTEM'].map((name) => scanner.lengthOf!(state, field(name)));
      return [...lengths, scanner.promptBytes!(state)];
    };
    fc.assert(
      fc.property(words, words, words, cuts, (system, text, file, at) => {
        const part = { type: 'document', text: file };
        const messages = [{ role: 'user', content: [{ type: 'text', text }, part] }];
        const json = JSON.stringify({ system, messages, input: text });
        const escaped = json.replace(
          /[^\0-\x7f]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
        expect(JSON.parse(escaped)).toEqual(JSON.parse(json));
        expect(measured(escaped, at)).toEqual(measured(json, []));
      }),
      { numRuns: 2000 },
    );
  });

  it('fails on more than 1024 containers within each other, and on nothing less deep', () => {
    const nested = (depth: number) => utf8.encode(`${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`);
    expect(found(nested(1024)).complete).toBe(true);
    expect(found(nested(1026)).complete).toBe(false);
    expect(found(utf8.encode('['.repeat(200_000))).complete).toBe(false);
  });

  it('keeps the beginning of a long text and counts the rest', () => {
    const long = 'é'.repeat(1000);
    const state = scan(utf8.encode(`{"model":"${long}","user":"u"}`), [100, 1000]);
    expect(scanner.lengthOf!(state, field('MODEL'))).toBe(2000);
    const at = scanner.textOf!(state, field('MODEL'));
    const kept = new Uint8Array(scanner.memory.buffer).subarray(at, at + 256);
    expect(Buffer.from(kept).toString()).toBe(long.slice(0, 128));
    expect(scanner.lengthOf!(state, field('USER'))).toBe(1);
  });
});

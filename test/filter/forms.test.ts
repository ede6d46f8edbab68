import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readForm } from './form-reference.js';
import { expectedOf, FormScanner } from './form-scanner.js';

const scanner = new FormScanner();
const BOUNDARY = 'X-b';
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

interface Part {
  readonly headers: string;
  readonly content: string;
}

function field(name: string, content: string): Part {
  return { headers: `Content-Disposition: form-data; name="${name}"`, content };
}

function file(name: string, content: string, type = 'audio/wav'): Part {
  const disposition = `Content-Disposition: form-data; name="${name}"; filename="a.wav"`;
  return { headers: `${disposition}\r\nContent-Type: ${type}`, content };
}

function written(parts: readonly Part[], end = `--${BOUNDARY}--\r\n`): Buffer {
  const body = parts.map(({ headers, content }) => `--${BOUNDARY}\r\n${headers}\r\n\r\n${content}\r\n`);
  return Buffer.from(`${body.join('')}${end}`, 'latin1');
}

function read(bytes: Uint8Array, sizes: Iterable<number> = [], options: { headOnly?: boolean } = {}) {
  expect(scanner.accepts(TYPE)).toBe(true);
  return scanner.read(bytes, sizes, options);
}

function hex(text: string): string {
  return Buffer.from(text, 'latin1').toString('hex');
}

/** Compares with the reference, in one piece or in any. */
function expectAgreement(bytes: Uint8Array, sizes: Iterable<number> = []): void {
  const reference = readForm(bytes, BOUNDARY);
  const { complete, found } = read(bytes, sizes);
  expect(complete).toBe(reference !== undefined);
  if (reference) expect(found).toEqual(expectedOf(reference));
}

const awkward = [
  field('language', 'en'),
  file('file', `RIFF\r\n--X-\r\n-\r\r\n--X\0\r\n\r\n--${BOUNDARY.slice(0, -1)}`),
  field('model', 'whis\r\n-per'),
  field('stream', 'True'),
  field('prompt', 'names: Ann, Bo'),
];

describe('the reader of forms', () => {
  it('finds the same however the form is cut in two or three', () => {
    const bytes = written(awkward);
    const whole = read(bytes);
    expect(whole).toMatchObject({
      complete: true,
      found: { texts: { model: hex('whis\r\n-per') }, stream: true, audio: true, file: false },
    });
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(read(bytes, [cut])).toEqual(whole);
      expect(read(bytes, [cut, 1])).toEqual(whole);
      expect(read(bytes, [cut, 17])).toEqual(whole);
    }
    expect(
      read(
        bytes,
        Array.from(bytes, () => 1),
      ),
    ).toEqual(whole);
  });

  it('finds what Node reads of the form that Node writes', async () => {
    const form = new FormData();
    form.set(
      'file',
      new File([Buffer.from('\r\n--\0ÿ'.repeat(500), 'latin1')], 'ü".wav', { type: 'audio/wav' }),
    );
    form.set('image', new File(['png'], 'a.png', { type: 'image/png' }));
    form.set('model', 'modèle "x"');
    form.append('user', 'first');
    form.append('user', 'last');
    form.set('stream', 'false');
    const response = new Response(form);
    const type = response.headers.get('content-type')!;
    const bytes = new Uint8Array(await response.arrayBuffer());
    const parsed = await new Response(bytes, { headers: { 'content-type': type } }).formData();
    expect(scanner.accepts(type)).toBe(true);
    const { complete, found } = scanner.read(bytes, [100, 1_000]);
    expect(complete).toBe(true);
    expect(Buffer.from(found.texts.model!, 'hex').toString()).toBe(parsed.get('model'));
    expect(Buffer.from(found.texts.user!, 'hex').toString()).toBe(parsed.getAll('user').at(-1));
    expect(found).toMatchObject({ stream: false, image: true, audio: true, file: false });
  });

  it('lets the last of repeated fields count, also when that is a file', () => {
    const { found } = read(
      written([field('model', 'a'), field('model', 'b'), field('user', 'u'), file('user', 'x')]),
    );
    expect(found.texts).toMatchObject({ model: hex('b'), user: undefined });
  });

  it('knows a field by its whole name, quoted or not, and whatever else the headers say', () => {
    const known = [
      'Content-Disposition: form-data; name="model"',
      'content-disposition:form-data;name=model',
      'Content-Type: text/plain; charset="utf-8"\r\nCONTENT-DISPOSITION: \tForm-Data ;\tNAME=model;',
      'Content-Length: 1\r\nContent-Disposition: form-data; name="model"\r\nContent-Transfer-Encoding: binary',
      'X: --X-b\r\nContent-Disposition: form-data; x="; name=\\"user\\""; name="model"',
    ];
    const others = [
      ...['models', 'model ', 'Model', 'model[]', '', 'mode', '\\"model', 'x'.repeat(5_000)].map(
        (name) => `Content-Disposition: form-data; name="${name}"`,
      ),
      'Content-Disposition: form-data; name="x"; filename="model"; size=1',
      'Content-Disposition: form-data; x=name; name=y; namex=model',
    ];
    for (const headers of known) {
      const { complete, found } = read(written([{ headers, content: 'm' }]));
      expect([headers, complete, found.texts.model]).toEqual([headers, true, hex('m')]);
    }
    for (const headers of others) {
      const { complete, found } = read(written([field('model', 'real'), { headers, content: 'decoy' }]));
      expect([headers, complete, found.texts.model]).toEqual([headers, true, hex('real')]);
    }
  });

  it.each([
    ['ends before its end', written([field('model', 'm')], '')],
    ['has no part at all and no end', Buffer.from('')],
    ['is JSON', Buffer.from('{"model":"m"}')],
    [
      'has bare line feeds',
      Buffer.from(
        written([field('model', 'm')])
          .toString()
          .replaceAll('\r\n', '\n'),
      ),
    ],
    [
      'has space behind a boundary',
      written([], `--${BOUNDARY} \r\n${field('model', 'm').headers}\r\n\r\nm\r\n--X-b--`),
    ],
    ['has a longer line that begins like a boundary', written([field('model', `m\r\n--${BOUNDARY}y`)])],
    ['has a part without a name', written([{ headers: 'Content-Disposition: form-data', content: '' }])],
    ['has a part without headers', written([], `--${BOUNDARY}\r\n\r\nx\r\n--X-b--`)],
    [
      'has two names in a part',
      written([{ headers: `${field('a', '').headers}; name="model"`, content: '' }]),
    ],
    [
      'has two dispositions in a part',
      written([{ headers: `${field('a', '').headers}\r\n${field('model', '').headers}`, content: '' }]),
    ],
    [
      'has an extended name',
      written([{ headers: `Content-Disposition: form-data; name*=utf-8''model`, content: '' }]),
    ],
    ['escapes letters of a name', written([field('mod\\el', 'm')])],
    [
      'is no form inside',
      written([{ headers: 'Content-Disposition: attachment; name="model"', content: '' }]),
    ],
    [
      'folds a header',
      written([{ headers: 'Content-Disposition: form-data;\r\n name="model"', content: '' }]),
    ],
    [
      'encodes a field',
      written([
        { headers: `${field('model', '').headers}\r\nContent-Transfer-Encoding: base64`, content: 'bQ==' },
      ]),
    ],
    [
      'ends a part right behind its headers',
      written([], `--${BOUNDARY}\r\n${field('model', '').headers}\r\n\r\n--X-b--`),
    ],
    [
      'has a boundary among headers',
      written([], `--${BOUNDARY}\r\n${field('a', '').headers}\r\n--X-b: x\r\n\r\n\r\n--X-b--`),
    ],
  ])('does not take for complete a form that %s', (_, bytes) => {
    expect(read(bytes).complete).toBe(false);
    expect(
      read(
        bytes,
        Array.from(bytes, () => 1),
      ).complete,
    ).toBe(false);
  });

  it('passes over what stands before the first boundary and behind the last', () => {
    const form = written([field('model', 'm')]);
    for (const before of ['\r\n', 'text\r\n', '--X-\r\n', '--X-a--\r\n\r\n']) {
      const decoy = written([field('model', 'decoy')]);
      const { complete, found } = read(Buffer.concat([Buffer.from(before), form, decoy]));
      expect([complete, found.texts.model]).toEqual([true, hex('m')]);
    }
  });

  it('stops at the first file when told to, with what stands before it', () => {
    const bytes = written([field('model', 'a'), field('model', 'b'), file('file', 'x'), field('model', 'c')]);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const outcome = read(bytes, [cut], { headOnly: true });
      expect([outcome.atFile, outcome.complete, outcome.found.texts.model]).toEqual([true, false, hex('b')]);
    }
    const none = read(written([file('file', 'x'), field('model', 'c')]), [], { headOnly: true });
    expect([none.atFile, none.found.texts.model]).toEqual([true, undefined]);
  });

  it('keeps the beginning of a long text and counts the rest', () => {
    const { found } = read(
      written([field('model', 'm'.repeat(1_000)), field('prompt', 'p'.repeat(5_000))]),
      [200, 300],
    );
    expect(found.texts.model).toBe(hex('m'.repeat(256)));
    expect(found.prompt!.length).toBe(5_000);
  });

  it.each([
    ['multipart/form-data; boundary=X', true],
    ['Multipart/Form-Data ;Boundary="a b"', true],
    ['multipart/form-data; charset="a;b"; boundary=X; x=y;', true],
    [`multipart/form-data; boundary=${'x'.repeat(70)}`, true],
    [`multipart/form-data; boundary=${'x'.repeat(71)}`, false],
    ['multipart/form-data', false],
    ['multipart/form-data; boundary=', false],
    ['multipart/form-data; boundary=""', false],
    ['multipart/form-data; charset="a\\";b"; boundary="a\\"\\\\b"', true],
    ['multipart/form-data; boundary="a\\\\"', false],
    ['multipart/form-data; boundary="a\\b"', false],
    ['multipart/form-data; boundary=a\\"b', false],
    ['multipart/form-data; boundary=a"b', false],
    ['multipart/form-data; boundary="a\\"', false],
    ['multipart/form-data; boundary="a', false],
    ['multipart/form-data; boundary="a"b', false],
    ['multipart/form-data; boundary="a "', false],
    ['multipart/form-data; boundary=a; boundary=b', false],
    ["multipart/form-data; boundary*=utf-8''a", false],
    ['multipart/form-data; boundary; boundary=a', false],
    ['multipart/form-datax; boundary=a', false],
    ['multipart/mixed; boundary=a', false],
    ['', false],
  ])('reads forms of the type %s: %s', (type, expected) => {
    expect(scanner.accepts(type)).toBe(expected);
  });

  it('takes the escapes out of a boundary', () => {
    const form = Buffer.from(
      ['--a"\\b', 'content-disposition: form-data; name="model"', '', 'm', '--a"\\b--', ''].join('\r\n'),
    );
    for (const headOnly of [false, true]) {
      expect(scanner.accepts('multipart/form-data; boundary="a\\"\\\\b"')).toBe(true);
      expect(scanner.read(form, [9], { headOnly })).toMatchObject({
        complete: true,
        found: { texts: { model: hex('m') } },
      });
    }
  });

  const content = fc.oneof(
    fc.constantFrom(
      '',
      'm',
      'true',
      'YES',
      '\r',
      '\n',
      '\r\n',
      '-',
      `\r\n--${BOUNDARY}`,
      `\r\n--${BOUNDARY}--`,
      '\r\n--X',
    ),
    fc.string({ unit: 'binary-ascii', maxLength: 300 }),
  );
  const contents = fc.array(content, { maxLength: 4 }).map((pieces) => pieces.join(''));
  const name = fc.constantFrom(
    'model',
    'user',
    'stream',
    'prompt',
    'prompt_cache_key',
    'service_tier',
    'x',
    'file',
  );
  const part = fc.oneof(
    fc.record({ name, contents }).map((one) => field(one.name, one.contents)),
    fc
      .record({ name, contents, type: fc.constantFrom('image/png', 'Audio/wav', 'text/plain', '') })
      .map((one) => file(one.name, one.contents, one.type)),
  );
  const sizes = fc.array(fc.nat(200), { maxLength: 5 });

  it('finds what the reference finds in any form, cut into any pieces', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), sizes, (parts, at) =>
        expectAgreement(written(parts), at),
      ),
      { numRuns: 4_000 },
    );
  });

  it('takes for complete what the reference takes, and nothing else, after any change to a form', () => {
    const change = fc.record({
      at: fc.nat(),
      cut: fc.nat(4),
      insert: fc.oneof(
        fc.constantFrom(
          '',
          '\r\n',
          '\r',
          '\n',
          '-',
          '--',
          BOUNDARY,
          ';',
          '"',
          '\\',
          '=',
          ':',
          ' ',
          '\t',
          '\0',
          '*',
          'name=',
        ),
        fc.string({ unit: 'binary-ascii', maxLength: 2 }),
      ),
    });
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 1, maxLength: 3 }),
        fc.array(change, { minLength: 1, maxLength: 3 }),
        sizes,
        (parts, changes, at) => {
          let changed = written(parts).toString('latin1');
          for (const { at: place, cut, insert } of changes) {
            const start = place % (changed.length + 1);
            changed = changed.slice(0, start) + insert + changed.slice(start + cut);
          }
          expectAgreement(Buffer.from(changed, 'latin1'), at);
        },
      ),
      { numRuns: 10_000 },
    );
  });
});

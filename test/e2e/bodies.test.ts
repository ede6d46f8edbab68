import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decisionOf } from '../../wire/decision.js';
import { hostileBodies } from '../hostile-bodies.js';
import { Acme, ADAPTER, BASE, MAX_BODY_BYTES, NEEDS } from './harness/acme.js';
import { suspiciousLines } from './harness/mesh.js';
import { type PostOptions, post, postHttp2 } from './harness/post.js';
import { sleep } from './harness/process.js';

describe('bodies through a real Envoy', () => {
  let acme: Acme;
  beforeAll(async () => {
    acme = await Acme.start();
  });
  afterAll(() => acme?.stop());

  it('finds the model in the body however it arrives, and passes the body on unchanged', async () => {
    const late = Buffer.from(
      JSON.stringify({
        messages: [{ role: 'user', content: 'lorem ipsum '.repeat(4_000) }],
        stream: false,
        prompt_cache_key: 'conv-late-1',
        model: BASE,
      }),
    );
    const cut = late.lastIndexOf('"model"') + 4;
    const thousands = Array.from({ length: Math.ceil(late.length / 1_000) }, (_, at) =>
      late.subarray(at * 1_000, (at + 1) * 1_000),
    );
    const homes = new Set<string>();
    for (let round = 0; round < 10; round++) {
      for (const [pieces, isChunked] of [
        [[late], false],
        [[late], true],
        [thousands, true],
        [[late.subarray(0, cut), late.subarray(cut)], true],
      ] as const) {
        for (const send of [post, postHttp2]) {
          const answer = await send(`${acme.envoy.url}/v1/chat/completions`, { pieces, isChunked });
          expect([answer.status, answer.body]).toEqual([200, expect.any(String)]);
          const stub = acme.all.find(({ name }) => name === answer.headers['x-stub'])!;
          expect(stub.attempts.at(-1)!.sha256).toBe(sha256(late));
          homes.add(stub.name);
        }
      }
    }
    expect(homes.size).toBe(1);
  });

  it('finds the model of a form before its file or behind it, and passes the form on unchanged', async () => {
    const model = formField('model', ADAPTER);
    for (const parts of [
      [model, formFile(40_000)],
      [formFile(40_000), model],
      [formField('model', BASE), formFile(40_000), model],
    ]) {
      const form = formOf(parts);
      const cut = form.lastIndexOf('model') + 2;
      for (const send of [post, postHttp2]) {
        for (const pieces of [[form], [form.subarray(0, cut), form.subarray(cut)]]) {
          const answer = await send(`${acme.envoy.url}/v1/audio/transcriptions`, {
            pieces,
            headers: FORM,
            isChunked: pieces.length > 1,
          });
          expect([answer.status, answer.headers['x-stub']]).toEqual([200, 'e2']);
          expect(acme.stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(form));
        }
      }
    }
    const before = acme.attempts;
    for (const [form, status, code] of [
      [formOf([formFile(10)]), 400, 'model_missing'],
      [formOf([formField('model', 'acme-leagl')]), 404, 'model_not_found'],
      [model, 400, 'invalid_form'],
    ] as const) {
      const answer = await post(`${acme.envoy.url}/v1/audio/transcriptions`, {
        pieces: [form],
        headers: FORM,
      });
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([status, code]);
    }
    expect(acme.attempts).toBe(before);
  });

  it('passes bodies on that are near the limit, and refuses larger ones', async () => {
    const body = (bytes: number) =>
      Buffer.from(JSON.stringify({ model: ADAPTER, padding: 'x'.repeat(bytes) }));
    const large = body(MAX_BODY_BYTES - 1_000);
    const answer = await post(`${acme.envoy.url}/v1/chat/completions`, { pieces: [large], isChunked: true });
    expect([answer.status, answer.headers['x-stub']]).toEqual([200, 'e2']);
    expect(acme.stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(large));
    const before = acme.attempts;
    for (const isChunked of [false, true]) {
      const refused = await post(`${acme.envoy.url}/v1/chat/completions`, {
        pieces: [body(MAX_BODY_BYTES)],
        isChunked,
      });
      expect([refused.status, decisionOf(refused.headers).reason]).toEqual([413, 'body-too-large']);
    }
    expect(acme.attempts).toBe(before);
  });

  it('gives bodies that tend to break small parsers the same outcome each time, and good ones beside them theirs', async () => {
    let isOver = false;
    const good = (async () => {
      const statuses: number[] = [];
      for (; !isOver; await sleep(10))
        statuses.push((await acme.ask(BASE, { key: `good ${statuses.length}` })).status);
      return statuses;
    })();
    const seen: object[] = [];
    for (const { body } of hostileBodies(BASE)) {
      const send = () =>
        post(`${acme.envoy.url}/v1/chat/completions`, { pieces: [Buffer.from(body)], isChunked: true });
      const statuses = (await Promise.all(Array.from({ length: 10 }, send))).map(({ status }) => status);
      seen.push({ body, outcomes: [...new Set(statuses)] });
    }
    isOver = true;
    expect(seen).toEqual(hostileBodies(BASE).map(({ body, outcome }) => ({ body, outcomes: [outcome] })));
    expect(new Set(await good)).toEqual(new Set([200]));
  });

  it('refuses an encoded body that has to be read', async () => {
    const before = acme.attempts;
    // The model has a need that only its body can tell, so that headers are not enough.
    for (const headers of [{}, { 'x-wardrop-model': ADAPTER, 'x-session-id': 'k' }]) {
      const answer = await post(`${acme.envoy.url}/v1/chat/completions`, zipped(headers));
      expect([answer.status, answer.body]).toEqual([415, expect.stringContaining('gzip')]);
    }
    expect(acme.attempts).toBe(before);
  });

  it('passes an encoded body on unread once a reload has removed the needs that it would have to tell', async () => {
    acme.reconfigure({ needs: { 'eu-only': NEEDS['eu-only'] } });
    const request = zipped({ 'x-wardrop-model': ADAPTER, 'x-session-id': 'k' });
    // By any worker of Envoy: connections of their own reach all of them.
    const answer = await acme.mesh.eventually('the body not to be needed', async () => {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => post(`${acme.envoy.url}/v1/chat/completions`, request)),
      );
      return answers.every(({ status }) => status === 200) && answers[0]!;
    });
    expect(answer.headers['x-stub']).toBe('e2');
    expect(acme.stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(request.pieces[0]!));
    const refused = await post(`${acme.envoy.url}/v1/chat/completions`, zipped({}));
    expect(refused.status).toBe(415);
  });

  it('sends on a form longer than may be read when the model stands before its file, and refuses others', async () => {
    const model = formField('model', ADAPTER);
    const file = formFile(3 * MAX_BODY_BYTES);
    const send = (parts: readonly Buffer[], isChunked: boolean) =>
      post(`${acme.envoy.url}/v1/audio/transcriptions`, {
        pieces: [formOf(parts)],
        headers: FORM,
        isChunked,
      });
    for (const isChunked of [false, true]) {
      for (let round = 0; round < 3; round++) {
        const answer = await send([model, file], isChunked);
        expect([answer.status, answer.headers['x-stub']]).toEqual([200, 'e2']);
        expect(acme.stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(formOf([model, file])));
        const refused = await send([file, model], isChunked);
        expect([refused.status, decisionOf(refused.headers).reason]).toEqual([413, 'body-too-large']);
      }
    }
  });

  it('never unpacks an encoded body: Envoy grows by less than a body may have', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000));
    const send = (named: Record<string, string>) =>
      post(`${acme.envoy.url}/v1/chat/completions`, {
        pieces: [bomb],
        headers: { 'content-encoding': 'gzip', ...named },
      });
    const memory = async () => {
      const view = (await (await fetch(`${acme.envoy.adminUrl}/memory`)).json()) as { allocated: string };
      return Number(view.allocated);
    };
    const before = await memory();
    for (let round = 0; round < 10; round++) {
      expect((await send({})).status).toBe(415);
      expect((await send({ 'x-wardrop-model': ADAPTER })).status).toBe(200);
      expect(acme.stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(bomb));
    }
    expect((await memory()) - before).toBeLessThan(MAX_BODY_BYTES);
  });

  it('leaves no warning about unknown fields, rejected updates or failed VMs in the log of Envoy', () => {
    expect(suspiciousLines(acme.envoy.process.output)).toEqual([]);
  });
});

const FORM = { 'content-type': 'multipart/form-data; boundary="a form"' };

function formField(name: string, value: string): Buffer {
  return Buffer.from(`--a form\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
}

/** A file full of what may be the beginning of a boundary. */
function formFile(bytes: number): Buffer {
  const headers = 'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav';
  return Buffer.from(`--a form\r\n${headers}\r\n\r\n${'\r\n--a for'.repeat(bytes / 9)}\r\n`);
}

function formOf(parts: readonly Buffer[]): Buffer {
  return Buffer.concat([...parts, Buffer.from('--a form--\r\n')]);
}

function zipped(headers: Readonly<Record<string, string>>): PostOptions {
  const body = JSON.stringify({ model: ADAPTER, messages: [], prompt_cache_key: 'k' });
  return { pieces: [gzipSync(body)], headers: { 'content-encoding': 'gzip', ...headers } };
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

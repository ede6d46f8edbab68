/** A body that tends to break small parsers, and what becomes of its request: 200 when it goes on to an engine. */
export interface HostileBody {
  readonly body: string | Uint8Array;
  readonly outcome: 200 | 400 | 404;
}

/** Requests for a model that exists, as far as they are any. */
export function hostileBodies(model: string): readonly HostileBody[] {
  const deep = (open: number, close: number) => `${'['.repeat(open)}${']'.repeat(close)}`;
  const many = Array.from({ length: 20_000 }, (_, at) => `"k${at}":1`).join();
  const badUtf8 = Buffer.from([0xff, 0xfe, 0xc0]);
  const bodies: readonly [HostileBody['body'], HostileBody['outcome']][] = [
    [`{"model":"${model}","x":${deep(50_000, 50_000)}}`, 400],
    [deep(200_000, 0), 400],
    [`{"model":"${model}","max_tokens":${'9'.repeat(5_000)}}`, 200],
    [`{"model":"${model}","temperature":1e99999}`, 200],
    [`{"model":"${model}","user":"\\ud800"}`, 200],
    [Buffer.concat([Buffer.from(`{"model":"${model}","user":"`), badUtf8, Buffer.from('"}')]), 200],
    [`{"model":"${model}\\u0000","messages":[]}`, 404],
    [`\ufeff{"model":"${model}","messages":[]}`, 200],
    [`\ufeff\ufeff{"model":"${model}","messages":[]}`, 400],
    [`[{"model":"${model}"}]`, 400],
    ['{"model":5,"messages":[]}', 400],
    ['{"model":null,"messages":[]}', 400],
    ['', 200],
    [`{"model":"${model}","messages":[{"role":"user","content":"unfinish`, 400],
    [`{${many},"model":"${model}"}`, 200],
  ];
  return bodies.map(([body, outcome]) => ({ body, outcome }));
}

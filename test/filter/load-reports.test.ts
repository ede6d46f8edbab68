import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { type Headers, Host } from '../../simulator/filter-host/host.js';
import { id64 } from '../../wire/hash.js';
import { MOST_LOADS_TOLD } from '../../wire/layout.js';
import { LOAD_NAMES } from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { ask, SSE, started } from './observed.js';
import { reportOf } from './reported.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();

describe('load reports in responses', () => {
  const TEXT = 'endpoint-load-metrics';
  const BINARY = 'endpoint-load-metrics-bin';
  /** A field of `OrcaLoadReport`: a double, or an entry of a map to doubles. */
  const double = (field: number, value: number) => {
    const bytes = Buffer.alloc(9, (field << 3) | 1);
    bytes.writeDoubleLE(value, 1);
    return bytes;
  };
  const metric = (field: number, name: string, value: number) => {
    const entry = Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name), double(2, value)]);
    return Buffer.concat([Buffer.from([(field << 3) | 2, entry.length]), entry]);
  };
  const report = Buffer.concat([
    double(1, 0.5),
    metric(4, 'cost', 3),
    metric(8, 'kv_cache_usage_perc', 0.93),
    metric(8, 'num_requests_waiting', 12),
    double(7, 0.25),
    double(9, 1.5),
  ]);

  /** What one response makes of the loads of its replica. */
  function loadOf(headers: Headers, trailers?: Headers) {
    const vm = started();
    const stream = ask(vm).respond(200, { headers: [...SSE, ...headers] });
    expect(stream.responseHeaders.map(([name]) => name)).not.toContain(TEXT);
    expect(stream.responseHeaders.map(([name]) => name)).not.toContain(BINARY);
    if (trailers) expect(stream.endWithTrailers(trailers).responseTrailers).toEqual([]);
    stream.end();
    const [load] = reportOf(vm).loads;
    if (!load) return undefined;
    expect(load).toMatchObject({ engine: id64('e0'), replica: id64('10.0.0.0:8000') });
    const told = LOAD_NAMES.flatMap((name, at) =>
      load.counts[at] ? [[name, Number((load.sums[at]! / load.counts[at]!).toPrecision(6))]] : [],
    );
    return { reports: load.reports, garbled: load.garbled, ...Object.fromEntries(told) };
  }

  it.each<[string, Headers]>([
    ['text', [[TEXT, 'TEXT named_metrics.kv_cache_usage_perc=0.93, named_metrics.num_requests_waiting=12']]],
    [
      'text with colons',
      [[TEXT, 'named_metrics.kv_cache_usage_perc:0.93,named_metrics.num_requests_waiting: 1.2e1']],
    ],
    [
      'JSON',
      [
        [
          TEXT,
          'JSON {"named_metrics":{"kv_cache_usage_perc":0.93,"num_requests_waiting":12},"mem":{"x":{}}}',
        ],
      ],
    ],
  ])('are read as %s', (_, headers) => {
    expect(loadOf(headers)).toEqual({ reports: 1, garbled: 0, kvUse: 0.93, waiting: 12 });
  });

  it.each<[string, Headers]>([
    ['of its own', [[BINARY, report.toString('base64')]]],
    ['without padding', [[BINARY, report.toString('base64url')]]],
    ['of text', [[TEXT, `BIN ${report.toString('base64')}`]]],
  ])('are read as binary in a header %s', (_, headers) => {
    const expected = { kvUse: 0.93, waiting: 12, utilization: 1.5, errorRate: 0.25 };
    expect(loadOf(headers)).toEqual({ reports: 1, garbled: 0, ...expected });
  });

  it('are read in trailers', () => {
    const trailers: Headers = [[TEXT, 'TEXT rps_fractional=7.5,eps=0']];
    expect(loadOf([], trailers)).toEqual({ reports: 1, garbled: 0, requestRate: 7.5, errorRate: 0 });
  });

  it('are kept from the client also where nobody knows who answered', () => {
    const headers: Headers = [
      [TEXT, 'TEXT eps=1'],
      [BINARY, report.toString('base64')],
    ];
    const native = new Host(module).startVm({ frontendId: 'west', nativeSteering: true });
    deliver(native, sketch([{ weight: 1 }]));
    const observing = new Host(module).startVm();
    deliver(observing, sketch([{ weight: 1 }], { steered: 0, pool: { shedFraction: 1 } }));
    for (const vm of [native, observing]) {
      const stream = ask(vm).respond(200, { address: '10.9.9.9:1', headers });
      const names = stream.responseHeaders.map(([name]) => name);
      expect(names.filter((name) => name === TEXT || name === BINARY)).toEqual([]);
      expect(stream.endWithTrailers(headers).responseTrailers).toEqual([]);
      stream.end();
    }
  });

  it('that tell nothing of interest are good reports all the same', () => {
    expect(loadOf([[TEXT, 'TEXT cpu_utilization=0.7']])).toEqual({ reports: 1, garbled: 0 });
  });

  it.each([
    'TEXT named_metrics.kv_cache_usage_perc=NaN',
    'TEXT named_metrics.kv_cache_usage_perc=-4, named_metrics.num_requests_waiting=1e30',
    'TEXT named_metrics.num_requests_waiting=1, named_metrics.kv_cache_usage_perc=1e30',
    'TEXT named_metrics.kv_cache_usage_perc',
    'TEXT named_metrics.kv_cache_usage_perc=0.5 0.6',
    'TEXT eps=1,eps=1',
    'TEXT eps=1,',
    'TEXT =1',
    'TEXT',
    '',
    'JSON {"named_metrics":{"kv_cache_usage_perc":"0.93"}}',
    'JSON {"eps":1',
    'JSON {"eps":1}}',
    'JSON [1]',
    `JSON ${'{"a":'.repeat(9)}1${'}'.repeat(9)}`,
    'BIN CAFE==',
    'BIN',
    'BIN !',
    `TEXT eps=1${',x=1'.repeat(2000)}`,
  ])('are left out as a whole, and counted, when they make no sense: %s', (value) => {
    expect(loadOf([[TEXT, value]])).toEqual({ reports: 0, garbled: 1 });
  });

  it('of more replicas than a report tells of are told in turns, a turn with each report that arrives', () => {
    const vm = new Host(module).startVm();
    deliver(vm, sketch(Array.from({ length: 13 }, () => ({ weight: 1, replicas: 100 }))));
    const served = new Set<string>();
    for (let i = 0; i < 10_000; i++) {
      const stream = vm.request({ 'x-session-id': `k${i}` });
      served.add(stream.endpoints[0]!);
      stream.respond(200, { headers: [[TEXT, 'TEXT rps_fractional=7.5']] }).end();
    }
    const replicas = served.size;
    const tell = () => {
      // However often it is written before it is sent.
      for (let tick = 0; tick < 3; tick++) vm.tick();
      vm.host.nowMs += 100;
      vm.answer(304);
      const { loads } = decodeUsageReport(vm.call!.body).vms[0]!;
      expect(loads.length).toBe(MOST_LOADS_TOLD);
      for (const { reports, sums, counts } of loads) {
        expect(sums).toEqual(counts.map((count) => 7.5 * count));
        expect(Math.max(...counts)).toBe(reports);
      }
      return loads.map(({ replica }) => replica);
    };
    for (let round = 0; round < 3; round++) {
      const first = new Set(tell());
      const second = tell();
      expect(second.slice(0, replicas - MOST_LOADS_TOLD).filter((replica) => first.has(replica))).toEqual([]);
      expect(new Set([...first, ...second]).size).toBe(replicas);
    }
  });

  it('are counted from zero again after some thousands', () => {
    const vm = started();
    const answer = () =>
      ask(vm)
        .respond(200, { headers: [[TEXT, 'TEXT eps=0.1']] })
        .end();
    for (let i = 0; i < 4_096; i++) answer();
    expect(reportOf(vm).loads).toMatchObject([{ reports: 4_096 }]);
    answer();
    expect(reportOf(vm).loads).toMatchObject([
      { reports: 1, sums: expect.arrayContaining([expect.closeTo(0.1)]) },
    ]);
  });

  it('never trap the filter, whatever they are', () => {
    let vm = started();
    const word = fc.constantFrom(
      'TEXT ',
      'JSON ',
      'BIN ',
      '',
      'named_metrics.',
      'eps',
      '=',
      ':',
      ',',
      '{',
      '}',
      '"',
      '1',
      '.',
      'e',
      '-',
      ' ',
    );
    const texts = fc.oneof(
      fc.array(word, { maxLength: 30 }).map((parts) => parts.join('')),
      fc.string({ maxLength: 60 }),
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.tuple(fc.nat(report.length - 1), fc.nat(255)).map(([at, value]) => {
        const spoiled = Buffer.from(report);
        spoiled[at] = value;
        return spoiled;
      }),
    );
    let sent = 0;
    const expectAllCounted = () => {
      const [load] = reportOf(vm).loads;
      expect(load!.reports + load!.garbled).toBe(sent);
      for (const [at, name] of LOAD_NAMES.entries()) {
        const most = name === 'kvUse' ? 1 : name === 'utilization' ? 100 : 1e9;
        expect(load!.sums[at]!).toBeLessThanOrEqual(load!.counts[at]! * most);
      }
    };
    fc.assert(
      fc.property(texts, bytes, (text, spoiled) => {
        // A VM counts from zero again after some more.
        if (sent === 4_000) {
          expectAllCounted();
          vm = started();
          sent = 0;
        }
        const headers: Headers = [
          [TEXT, text],
          [BINARY, Buffer.from(spoiled).toString('base64')],
        ];
        ask(vm).respond(200, { headers }).end();
        sent += 2;
      }),
      { numRuns: 2000 },
    );
    expectAllCounted();
  });
});

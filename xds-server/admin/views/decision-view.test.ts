import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../../simulator/filter-host/build.js';
import { filterRun } from '../../../simulator/filter-host/run-once.js';
import { sketch } from '../../../test/filter/snapshots.js';
import type { SnapshotView } from '../../../wire/snapshot-view.js';
import { loadConfig } from '../../config/load.js';
import { packageFile } from '../../package-file.js';
import { SnapshotBoard } from '../../sync/snapshot-board.js';
import { readDecideRequest } from '../requests/decide-request.js';
import { decisionView } from './decision-view.js';

filterModule();
const runFilter = filterRun(readFileSync(packageFile('dist', 'filter', 'wardrop.wasm')));
const text = `frontends: [{id: west, region: r}, {id: east, region: r}]
engines: [{id: e0, region: r, models: [m], endpoints: [127.0.0.1:1]}]
`;

function server(snapshot: SnapshotView, more = '') {
  const board = new SnapshotBoard(Date.now);
  board.publish(snapshot);
  return { board, config: loadConfig('fleet.yaml', () => text + more), runFilter };
}

const request = (change: object = {}) => readDecideRequest({ frontend: 'west', body: '{}', ...change });
const keyed = (key: string, change: object = {}) => request({ headers: [['X-Session-Id', key]], ...change });
const answer = (snapshot: SnapshotView, asked = request()) => decisionView(server(snapshot), asked).answer;

describe('the decision on a request', () => {
  it('names pool, engine with its weight, endpoints with theirs, retries, reason and plan', () => {
    const fleet = server(sketch([{ weight: 3, replicas: 2 }, { weight: 1 }]));
    const views = Array.from({ length: 40 }, (_, n) => decisionView(fleet, keyed(`k${n}`)));
    const view = views.find(({ engine }) => engine === 'e0')!;
    expect(view).toMatchObject({
      planId: '0123456789abcdef',
      reason: 'planned',
      mode: null,
      pool: 'm',
      weight: 0.75,
      retries: 2,
      route: null,
      answer: null,
    });
    expect(view.endpoints.map(({ engine }) => engine)).toEqual(['e0', 'e0', 'e1']);
    expect(view.endpoints[2]!.address).toBe('10.0.1.0:8000');
    expect(views.find(({ engine }) => engine === 'e1')).toMatchObject({ weight: 0.25 });
  });

  it('is the same however often it is asked: no question leaves anything behind', () => {
    const fleet = server(sketch([{ weight: 1, replicas: 2 }, { weight: 1 }]));
    const first = decisionView(fleet, keyed('k'));
    for (let n = 0; n < 30; n++) expect(decisionView(fleet, keyed('k'))).toEqual(first);
  });

  it('does not obey steering headers of clients', () => {
    const fleet = server(sketch([{ weight: 1 }]));
    const headers = [
      ['x-wardrop-cluster', 'nowhere'],
      ['x-wardrop-route', 'stream-long'],
    ];
    expect(decisionView(fleet, request({ headers }))).toMatchObject({ pool: 'm', route: null });
  });

  it('names the route of a stream', () => {
    const body = '{"model":"m","stream":true,"messages":[]}';
    expect(decisionView(server(sketch([{ weight: 1 }])), request({ body })).route).toBe('stream-short');
  });

  it('is an answer where the filter gives one', () => {
    const body = Buffer.from('{"model":"other"}').toString('base64');
    expect(answer(sketch([{ weight: 1 }]), request({ body, bodyEncoding: 'base64' }))).toEqual({
      status: 404,
      code: 'model_not_found',
      message: 'The model `other` does not exist or is not served here.',
    });
    expect(answer(sketch([{ weight: 1 }], { pool: { shedFraction: 1 } }))?.status).toBe(429);
    expect(answer(sketch([{ weight: 1 }]), request({ path: '/wardrop/ready', body: '' }))?.code).toBeNull();
  });

  it('says where nothing is steered, and where Envoy picks the engine', () => {
    const snapshot = sketch([{ weight: 1 }], { steered: 0 });
    expect(decisionView(server(snapshot), request())).toMatchObject({
      mode: 'observe',
      pool: 'm',
      engine: 'e0',
      endpoints: [],
    });
    const native = server(sketch([{ weight: 1 }]), 'steering: native\n');
    expect(decisionView(native, keyed('k'))).toMatchObject({ reason: 'native', pool: 'm', endpoints: [] });
  });

  it('needs a known frontend and a plan', () => {
    const fleet = server(sketch([{ weight: 1 }]));
    expect(() => decisionView(fleet, request({ frontend: 'wset' }))).toThrow(
      'unknown frontend "wset"; known: east, west',
    );
    expect(() => decisionView(fleet, request({ frontend: 'east' }))).toThrow('no plan is published yet');
  });
});

describe('a request to decide', () => {
  it.each([
    [{}, 'missing key "frontend"'],
    [{ frontend: 'f', method: 'get' }, '/method: must match'],
    [{ frontend: 'f', path: 'v1' }, '/path: must match'],
    [{ frontend: 'f', headers: [['a']] }, '/headers/0: must NOT have fewer than 2 items'],
    [{ frontend: 'f', headers: [['a b', '']] }, '/headers/0/0: must match'],
    [{ frontend: 'f', headers: [['a', 's3cret\n']] }, '/headers/0/1: must match'],
    [{ frontend: 'f', bodyEncoding: 'hex' }, '/bodyEncoding: must be one of utf8, base64'],
  ])('%j is refused, without the values of headers', (body, message) => {
    expect(() => readDecideRequest(body)).toThrow(message);
    expect(() => readDecideRequest(body)).not.toThrow('s3cret');
  });
});

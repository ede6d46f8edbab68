import type { Ports } from './ports.js';

/** Served by engines that meet every need of bodies, so that its key and model may come by header alone. */
export const HEADER_MODEL = 'acme-chat-8b';
/** Has needs that only the body can tell. */
export const BODY_MODEL = 'acme-long-8b';
export const FRONTEND = 'bench';

/** Far more than the load: nothing is shed, retries earn their full share. */
const REQUESTS_PER_SECOND = 1_000_000;

/** Configuration of the control server: two models on two engines of two replicas each, with all kinds of needs. */
export function fleetConfig(ports: Ports): object {
  const at = (port: number) => `127.0.0.1:${port}`;
  const [one, two] = ports.engines;
  const engine = (id: string, model: string, first: number, labels: object) => ({
    id,
    region: 'here',
    models: [model],
    labels,
    profile: 'engine',
    endpoints: [at(first), at(first + 1)],
  });
  const able = { context: '128k', sight: 'yes' };
  return {
    server: {
      xds: { listen: at(ports.xds) },
      sync: { listen: at(ports.sync) },
      admin: { listen: at(ports.api) },
      stateFile: 'state.json',
    },
    frontends: [{ id: FRONTEND, region: 'here', listen: at(ports.filter) }],
    engines: [
      engine('e1', HEADER_MODEL, one, { residency: 'eu', ...able }),
      engine('e2', HEADER_MODEL, one + 2, { residency: 'us', ...able }),
      engine('e3', BODY_MODEL, two, { residency: 'eu', ...able }),
      engine('e4', BODY_MODEL, two + 2, { residency: 'us', context: '16k', sight: 'no' }),
    ],
    profiles: { engine: { requestsPerSecond: REQUESTS_PER_SECOND } },
    demand: {
      [FRONTEND]: {
        models: { [HEADER_MODEL]: { requestsPerSecond: 5000 }, [BODY_MODEL]: { requestsPerSecond: 5000 } },
      },
    },
    needs: {
      'eu-only': { when: { header: { 'x-data-residency': 'eu' } }, engines: { residency: 'eu' } },
      'long-context': { when: { promptTokens: 16_000 }, engines: { context: '128k' } },
      pictures: { when: { body: 'images' }, engines: { sight: 'yes' } },
    },
    aliases: { 'acme-chat': HEADER_MODEL },
    filter: { tenantHeader: 'x-tenant' },
  };
}

import { SYNC_CLUSTER, XDS_CLUSTER } from '../../../wire/names.js';
import { isOneHost, parseHostPort } from '../../fleet/address.js';
import { parseSelector } from '../../fleet/metric-selector.js';
import type { Path } from '../problem.js';
import type { ConfigFile } from '../schema/schema.js';
import type { Partly } from '../schema/schema-type.js';
import type { Draft, Findings } from './findings.js';

const HOW_TO_NAME = 'use ip:port; for host names, discovery: {dns: "name:port"}';

type Entry = Partly<ConfigFile['engines'][number]>;

export function checkEngines(config: Draft, found: Findings): void {
  const endpoints = new Map<string, Path>();
  const profileIds = new Set(Object.keys(config.profiles ?? {}));
  for (const [index, engine] of (config.engines ?? []).entries()) {
    for (const [at, endpoint] of (engine?.endpoints ?? []).entries()) {
      const path = ['engines', index, 'endpoints', at];
      const address = found.address(path, endpoint, HOW_TO_NAME);
      if (address === undefined) continue;
      found.once(endpoints, address, path, `endpoint ${address}`);
      if (!isOneHost(address)) found.problem(path, `${address} is the address of no single machine`);
    }
    const models = new Map<string, Path>();
    for (const [at, model] of (engine?.models ?? []).entries()) {
      if (model === undefined) continue;
      const path = ['engines', index, 'models', at];
      found.once(models, model, path, `model ${JSON.stringify(model)}`);
      if (model === SYNC_CLUSTER || model === XDS_CLUSTER) {
        found.problem(path, `${JSON.stringify(model)} is the name of a cluster that Envoys need`);
      }
    }
    checkReplicas(found, index, engine);
    checkMetrics(found, index, engine?.metrics);
    checkClientCertificate(found, index, engine?.tls);
    const path = ['engines', index, 'profile'];
    if (engine?.profile !== undefined) found.known(path, 'profile', engine.profile, profileIds);
    else if (engine !== undefined) {
      found.warn(
        ['engines', index],
        `engine ${JSON.stringify(engine.id ?? index)} has no profile`,
        profileIds.size > 0
          ? 'the profile with the most work per request is used'
          : 'one request per second and replica is assumed, and what is more is refused',
      );
    }
  }
  checkUpstreams(config, found);
  checkStatistics(config, found);
}

/** Envoy's statistics of a pool have underscores for the dots of its name. */
function checkStatistics(config: Draft, found: Findings): void {
  const first = new Map<string, string>();
  const told = new Set<string>();
  for (const [index, engine] of (config.engines ?? []).entries()) {
    for (const [at, model] of (engine?.models ?? []).entries()) {
      if (model === undefined) continue;
      const name = model.replaceAll('.', '_');
      const other = first.get(name) ?? model;
      first.set(name, other);
      if (other === model || told.has(model)) continue;
      told.add(model);
      found.warn(
        ['engines', index, 'models', at],
        `models ${JSON.stringify(other)} and ${JSON.stringify(model)} have the same name, ${JSON.stringify(name)}, in Envoy's own statistics`,
        "Wardrop's metrics keep them apart",
      );
    }
  }
}

/** Engines of a model share a cluster in Envoy, which speaks to all of them alike. */
function checkUpstreams(config: Draft, found: Findings): void {
  const first = new Map<string, { readonly id: string; readonly upstream: string }>();
  for (const [index, engine] of (config.engines ?? []).entries()) {
    const upstream = JSON.stringify([engine?.tls, engine?.auth]);
    for (const model of engine?.models ?? []) {
      if (model === undefined) continue;
      const other = first.get(model);
      if (other === undefined) first.set(model, { id: engine?.id ?? String(index), upstream });
      else if (other.upstream !== upstream) {
        const message = `tls and auth differ from those of engine ${JSON.stringify(other.id)}, which serves ${JSON.stringify(model)}, too`;
        found.problem(['engines', index], message, { hint: 'give both the same' });
        break;
      }
    }
  }
}

function checkReplicas(found: Findings, index: number, engine: Entry | undefined): void {
  if (engine === undefined) return;
  const { endpoints, discovery } = engine;
  const path = ['engines', index];
  const sources = Object.values(discovery ?? {}).filter((value) => value !== undefined).length;
  if (endpoints === undefined && discovery === undefined) {
    if (found.faults.excuse(path, ['endpoints', 'discovery'])) return;
    found.problem(path, 'missing key "endpoints"', { hint: 'or say where they are found: discovery' });
  } else if (endpoints !== undefined && discovery !== undefined) {
    found.problem([...path, 'discovery'], 'give either endpoints or discovery', { at: 'key' });
  } else if (
    discovery !== undefined &&
    sources !== 1 &&
    !found.faults.excuse([...path, 'discovery'], ['dns', 'srv', 'file'])
  ) {
    found.problem([...path, 'discovery'], 'give exactly one of dns, srv and file', { at: 'key' });
  }
  if (discovery?.dns !== undefined && parseHostPort(discovery.dns) === undefined) {
    const problem = `${JSON.stringify(discovery.dns)} is not a name:port`;
    found.problem([...path, 'discovery', 'dns'], problem, { hint: 'such as engines.example:8000' });
  }
}

/** A certificate without its key, or a key alone, can be shown to nobody. */
function checkClientCertificate(
  found: Findings,
  index: number,
  tls: Partly<ConfigFile['engines'][number]['tls']> | undefined,
): void {
  const path = ['engines', index, 'tls'];
  const given = (['certFile', 'keyFile'] as const).filter((key) => tls?.[key] !== undefined);
  if (given.length !== 1 || found.faults.excuse(path, ['certFile', 'keyFile'])) return;
  const missing = given[0] === 'certFile' ? 'keyFile' : 'certFile';
  found.problem(path, `missing key "${missing}", to go with ${given[0]}`);
}

function checkMetrics(
  found: Findings,
  index: number,
  metrics: Partly<ConfigFile['engines'][number]['metrics']> | undefined,
): void {
  const path = ['engines', index, 'metrics'];
  const names = Object.entries(metrics?.names ?? {});
  for (const [signal, text] of names) {
    if (text === undefined || parseSelector(text) !== undefined) continue;
    const problem = `${JSON.stringify(text)} is neither a metric's name nor one with labels`;
    found.problem([...path, 'names', signal], problem, { hint: 'such as my_queue{kind="waiting"}' });
  }
  if (metrics?.kind === 'custom' && names.length === 0 && !found.faults.excuse(path, ['names'])) {
    found.problem(path, 'kind is custom, but names is empty', { hint: 'name at least running' });
  } else if (metrics?.kind === 'none' && names.length > 0) {
    found.problem([...path, 'names'], 'nothing is read, because kind is none', {
      hint: 'set kind: custom',
    });
  }
}

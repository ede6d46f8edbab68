import { checkDemand } from './checks/demand.js';
import { checkEngines } from './checks/engines.js';
import { type Draft, Findings } from './checks/findings.js';
import { checkFrontends } from './checks/frontends.js';
import { checkNeeds } from './checks/needs.js';
import { checkNetwork } from './checks/network.js';
import { checkPolicy } from './checks/policy.js';
import { checkProfiles } from './checks/profiles.js';
import { checkServer } from './checks/server.js';
import type { Faults } from './faults.js';
import type { NetworkTable } from './network-table.js';
import type { YamlSource } from './yaml-source.js';

/** Finds what a schema cannot: contradictions between parts, in whatever is left of an invalid document. */
export function crossCheck(
  config: Draft,
  source: YamlSource,
  faults: Faults,
  table: NetworkTable | undefined,
): Pick<Findings, 'problems' | 'warnings'> {
  const found = new Findings(config, source, faults);
  checkServer(config, found);
  found.onceEach('frontends', config.frontends);
  found.onceEach('engines', config.engines);
  checkFrontends(config, found);
  checkEngines(config, found);
  checkNetwork(config, found, table);
  checkProfiles(config, found);
  found.pools = checkNeeds(config, found);
  checkDemand(config, found);
  checkPolicy(config, found);
  return found;
}

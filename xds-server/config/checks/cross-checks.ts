import type { Faults } from '../document/faults.js';
import type { YamlSource } from '../document/yaml-source.js';
import type { NetworkTable } from '../network-table.js';
import { checkDemand } from './demand.js';
import { checkEngines } from './engines.js';
import { type Draft, Findings } from './findings.js';
import { checkFrontends } from './frontends.js';
import { checkNeeds } from './needs.js';
import { checkNetwork } from './network.js';
import { checkPolicy } from './policy.js';
import { checkProfiles } from './profiles.js';
import { checkServer } from './server.js';
import { checkVariables } from './variables.js';

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
  checkVariables(config, found);
  return found;
}

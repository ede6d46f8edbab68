import { dirname, resolve } from 'node:path';
import { buildExpectedDemand } from './build/demand.js';
import { buildDiscovery } from './build/discovery.js';
import { buildFilter } from './build/filter.js';
import { buildFleet } from './build/fleet.js';
import { buildPolicy } from './build/policy.js';
import { buildProfiles } from './build/profiles.js';
import { buildServer } from './build/server.js';
import { crossCheck } from './checks/cross-checks.js';
import type { Config } from './config.js';
import { datedCertificates } from './dated-certificates.js';
import { type ReadFile, readFromDisk, readSource } from './document/read-file.js';
import { validate } from './document/validate.js';
import { NamedFiles } from './named-files.js';
import { ConfigError, type ConfigProblem } from './problem.js';
import type { ConfigFile } from './schema/schema.js';

/**
 * Reads and checks a configuration file and the files it names. `readReplicas` reads lists of replicas, which are looked at
 * here and belong to discovery.
 *
 * @throws {ConfigError} with every problem there is
 */
export function loadConfig(
  file: string,
  readFile: ReadFile = readFromDisk,
  readReplicas: ReadFile = readFile,
): Config {
  const source = readSource(file, readFile);
  const { value, problems, faults } = validate(source);
  const files = new NamedFiles(source, readFile);
  const table = files.readTable(value);
  const secrets = files.readSecrets(value);
  const upstreams = files.readUpstreams(value);
  files.readReplicaFiles(value, readReplicas);
  const crossChecked = crossCheck(value, source, faults, table);
  const all = [...problems, ...files.problems, ...crossChecked.problems];
  if (all.length > 0) throw new ConfigError('WARDROP_CONFIG_INVALID', all.sort(byPlace(file)));

  // What is built takes a file that passed all checks.
  const config = value as ConfigFile;
  const profiles = buildProfiles(config);
  const fleet = buildFleet(config, profiles, table);
  return {
    file,
    fleet,
    profiles,
    policy: buildPolicy(config),
    outlierPenalty: config.policy.outlierPenalty,
    steered: config.policy.mode === 'observe' ? 0 : config.policy.steerPercent / 100,
    expectedDemand: buildExpectedDemand(config, fleet),
    discovery: buildDiscovery(config, dirname(resolve(file))),
    upstreams,
    certificates: datedCertificates(secrets.tls, upstreams),
    filter: buildFilter(config.filter),
    timeouts: config.timeouts,
    loadReports: config.loadReports,
    ...(config.accessLog !== undefined && { accessLog: config.accessLog }),
    steering: config.steering,
    ...(config.policy.retries.backstop !== undefined && { retryBackstop: config.policy.retries.backstop }),
    server: buildServer(config, file, secrets),
    warnings: [...crossChecked.warnings, ...files.warnings],
    shown: redact(config),
  };
}

function redact(config: ConfigFile): ConfigFile {
  if (config.server.token === undefined) return config;
  return { ...config, server: { ...config.server, token: '(secret)' } };
}

function byPlace(file: string): (a: ConfigProblem, b: ConfigProblem) => number {
  return (a, b) =>
    Number(a.file !== file) - Number(b.file !== file) || a.line - b.line || a.column - b.column;
}

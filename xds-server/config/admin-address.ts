import { parseAddress } from '../fleet/address.js';
import type { Address } from '../fleet/fleet.js';
import { type ReadFile, readFromDisk, readSource } from './document/read-file.js';
import { validate } from './document/validate.js';
import { ConfigError } from './problem.js';

/**
 * Where the control server of a configuration file answers. Nothing else in the file needs to be right: while it is
 * broken, the control server goes on with what it read before, and has to be asked.
 *
 * @throws {ConfigError} when that address cannot be read
 */
export function adminAddress(file: string, readFile: ReadFile = readFromDisk): Address {
  const source = readSource(file, readFile);
  const { value, problems, faults } = validate(source);
  const written = value.server?.admin?.listen;
  const isElsewhere = faults.excuse(['server'], ['admin']) || faults.excuse(['server', 'admin'], ['listen']);
  if (written === undefined || isElsewhere || faults.has(['server'])) {
    throw new ConfigError('WARDROP_CONFIG_INVALID', problems);
  }
  const parsed = parseAddress(written);
  if ('address' in parsed) return parsed.address;
  const problem = source.problem(['server', 'admin', 'listen'], parsed.error, { hint: parsed.hint });
  throw new ConfigError('WARDROP_CONFIG_INVALID', [problem]);
}

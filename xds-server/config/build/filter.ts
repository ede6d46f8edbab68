import type { FilterSettings } from '../config.js';
import type { ConfigFile } from '../schema/schema.js';

export function buildFilter({
  readBodies,
  maxBodyBytes,
  tenantHeader,
  keyHeaders,
  keyFields,
  prefixKeyBytes,
  placement,
}: ConfigFile['filter']): FilterSettings {
  return {
    readBodies,
    maxBodyBytes,
    placement,
    ...(keyHeaders === undefined ? {} : { keyHeaders: keyHeaders.map((name) => name.toLowerCase()) }),
    ...(keyFields === undefined ? {} : { keyFields }),
    ...(prefixKeyBytes === 0 ? {} : { prefixKeyBytes }),
    ...(tenantHeader === undefined ? {} : { tenantHeader: tenantHeader.toLowerCase() }),
  };
}

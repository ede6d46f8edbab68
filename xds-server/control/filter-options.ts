import { encodeFilterConfig, type FilterConfig } from '../../wire/filter-config.js';
import type { FilterSettings } from '../config/config.js';
import type { FilterOptions } from '../xds/index.js';

/** Room beside the longest body, so that the filter and not Envoy answers for one that is longer. */
const BUFFER_SLACK_BYTES = 65_536;

/** How the filters of a frontend are set up. */
export function filterOptions(
  { readBodies, maxBodyBytes, tenantHeader }: FilterSettings,
  frontendId: string,
  syncToken: string | undefined,
): FilterOptions {
  const common: FilterConfig = {
    frontendId,
    ...(syncToken === undefined ? {} : { syncToken }),
    ...(tenantHeader === undefined ? {} : { tenantHeader }),
  };
  const withoutBodies = encodeFilterConfig(common);
  if (!readBodies) return { filterConfig: withoutBodies };
  return {
    filterConfig: encodeFilterConfig({ ...common, readBodies, maxBodyBytes }),
    withoutBodies,
    bufferBytes: maxBodyBytes + BUFFER_SLACK_BYTES,
  };
}

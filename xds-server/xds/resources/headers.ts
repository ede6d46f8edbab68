import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HeaderMutationSchema } from '../../gen/envoy/config/common/mutation_rules/v3/mutation_rules_pb.js';
import {
  HeaderValueOption_HeaderAppendAction,
  type HeaderValueOptionSchema,
} from '../../gen/envoy/config/core/v3/base_pb.js';
import type { HeaderMatcherSchema } from '../../gen/envoy/config/route/v3/route_components_pb.js';

/** Mutations that remove these headers, in any number of values. */
export function removals(headers: readonly string[]): MessageInitShape<typeof HeaderMutationSchema>[] {
  return headers.map((header) => ({ action: { case: 'remove', value: header } }));
}

/** Sets a header, whatever values it has. */
export function headerOf(key: string, value: string): MessageInitShape<typeof HeaderValueOptionSchema> {
  const appendAction = HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD;
  return { header: { key, value }, appendAction };
}

/** Matches requests that have this value of a header. */
export function isHeader(name: string, value: string): MessageInitShape<typeof HeaderMatcherSchema> {
  const exact = { matchPattern: { case: 'exact' as const, value } };
  return { name, headerMatchSpecifier: { case: 'stringMatch', value: exact } };
}

import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HeaderMutationSchema } from '../../gen/envoy/config/common/mutation_rules/v3/mutation_rules_pb.js';

/** Mutations that remove these headers, in any number of values. */
export function removals(headers: readonly string[]): MessageInitShape<typeof HeaderMutationSchema>[] {
  return headers.map((header) => ({ action: { case: 'remove', value: header } }));
}

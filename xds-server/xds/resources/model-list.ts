import type { MessageInitShape } from '@bufbuild/protobuf';
import { MODEL_HEADER } from '../../../wire/names.js';
import { FilterConfigSchema, type RouteSchema } from '../../gen/envoy/config/route/v3/route_components_pb.js';
import { headerOf, isHeader } from './headers.js';
import { pack } from './pack.js';

const PATH = '/v1/models';

/** What clients of OpenAI's API expect of a list of models. */
export function modelList(names: readonly string[]): string {
  const data = names.map((id) => ({ id, object: 'model', created: 0, owned_by: 'wardrop' }));
  return JSON.stringify({ object: 'list', data });
}

/**
 * The list of all models, by Envoy itself and without the filter of this name: of several models, no engine knows them all. Who
 * names a model in a header is told by an engine that has it.
 */
export function modelListRoute(list: string, filterName: string): MessageInitShape<typeof RouteSchema> {
  return {
    name: 'models',
    match: {
      pathSpecifier: { case: 'path', value: PATH },
      headers: [
        isHeader(':method', 'GET'),
        { name: MODEL_HEADER, headerMatchSpecifier: { case: 'presentMatch', value: false } },
      ],
    },
    typedPerFilterConfig: { [filterName]: pack(FilterConfigSchema, { disabled: true }) },
    responseHeadersToAdd: [headerOf('content-type', 'application/json')],
    action: {
      case: 'directResponse',
      value: { status: 200, body: { specifier: { case: 'inlineString', value: list } } },
    },
  };
}

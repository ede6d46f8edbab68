import { BODY_MODEL, HEADER_MODEL } from './fleet.js';
import type { Load } from './load.js';
import type { World } from './world.js';

export type VariantName =
  | 'defaults'
  | 'none'
  | 'maglev'
  | 'filter'
  | 'c'
  | 'bare'
  | 'extProc'
  | 'noneNoBody'
  | 'filterNoBody'
  | 'cNoBody'
  | 'bareNoBody'
  | 'extProcNoBody'
  | 'noneBody2k'
  | 'bareBody2k'
  | 'filterBody2k'
  | 'extProcBody2k'
  | 'noneBody100k'
  | 'bareBody100k'
  | 'filterBody100k'
  | 'extProcBody100k';

export interface Variant {
  readonly name: VariantName;
  /** The variant without a filter that gets the same requests. */
  readonly floor: VariantName;
  readonly load: Omit<Load, 'requests' | 'connections' | 'chunks'>;
  /** The process whose CPU counts beside Envoy's. */
  readonly pickerPid?: number;
}

/** The smallest chat request. */
const SMALL_BODY = 256;
const KEY = 'conv-00000000';

/** Requests that give model and key in headers; those without a body are of the method GET. */
export function headerLoad(port: number, bodyBytes = SMALL_BODY): Variant['load'] {
  return {
    headers: { 'x-tenant': 'acme', 'x-session-id': KEY, 'x-wardrop-model': HEADER_MODEL },
    keyHeader: true,
    model: HEADER_MODEL,
    bodyBytes,
    port,
  };
}

/** All variants, a floor before those that are compared with it. */
export function variantsOf({ ports, pickerPid, jsonPickerPid }: World, withC: boolean): Variant[] {
  const common = { headers: { 'x-tenant': 'acme' }, keyHeader: false, model: BODY_MODEL };
  const headers = (name: VariantName, port: number): Variant => ({
    name,
    floor: 'none',
    load: headerLoad(port),
  });
  const noBody = (name: VariantName, port: number): Variant => ({
    name,
    floor: 'noneNoBody',
    load: headerLoad(port, 0),
  });
  const bodies = (size: '2k' | '100k', bodyBytes: number): Variant[] => {
    const floor: VariantName = `noneBody${size}`;
    const load = (port: number) => ({ ...common, bodyBytes, port });
    return [
      { name: floor, floor, load: load(ports.none) },
      ...(withC ? [{ name: `bareBody${size}` as const, floor, load: load(ports.bareBody) }] : []),
      { name: `filterBody${size}`, floor, load: load(ports.filter) },
      { name: `extProcBody${size}`, floor, load: load(ports.extProcBody), pickerPid: jsonPickerPid },
    ];
  };
  return [
    headers('none', ports.none),
    headers('defaults', ports.defaults),
    headers('maglev', ports.maglev),
    headers('filter', ports.filter),
    ...(withC ? [headers('c', ports.c), headers('bare', ports.bare)] : []),
    { ...headers('extProc', ports.extProc), pickerPid },
    noBody('noneNoBody', ports.none),
    noBody('filterNoBody', ports.filter),
    ...(withC ? [noBody('cNoBody', ports.c), noBody('bareNoBody', ports.bare)] : []),
    { ...noBody('extProcNoBody', ports.extProc), pickerPid },
    ...bodies('2k', 2048),
    ...bodies('100k', 102_400),
  ];
}

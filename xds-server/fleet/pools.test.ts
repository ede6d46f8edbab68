import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NeedCondition } from '../../wire/snapshot-view.js';
import type { Need } from './needs.js';
import { meets, needsThatMatter, poolsOfModel } from './pools.js';

const engine = (id: string, labels: Record<string, string>) => ({ id, models: ['m'], labels });
const header = (value?: string): NeedCondition => ({
  kind: 'header',
  name: 'x-data-residency',
  ...(value === undefined ? {} : { value }),
});
const need = (id: string, when: NeedCondition, labels: Need['labels']): Need => ({ id, when, labels });

const engines = [
  engine('e1', { residency: 'eu', hardware: 'a100' }),
  engine('e2', { residency: 'eu', hardware: 'h100' }),
  engine('e3', { residency: 'us', hardware: 'h100' }),
];
const eu = need('eu-only', header('eu'), { residency: ['eu'] });
const vision = need('vision', { kind: 'body', feature: 'images' }, { hardware: ['h100', 'h200'] });

describe('the pools of a model', () => {
  it('are one for each set of engines that some combination of needs leaves', () => {
    const { pools, modelNeeds } = poolsOfModel('m', engines, [vision, eu]);
    expect(pools.map(({ id, needs, engineIds }) => [id, needs, engineIds])).toEqual([
      ['m', [], ['e1', 'e2', 'e3']],
      ['m~eu-only', ['eu-only'], ['e1', 'e2']],
      ['m~vision', ['vision'], ['e2', 'e3']],
      ['m~eu-only~vision', ['eu-only', 'vision'], ['e2']],
    ]);
    expect(modelNeeds).toEqual({
      model: 'm',
      needs: ['eu-only', 'vision'],
      poolIds: ['m', 'm~eu-only', 'm~vision', 'm~eu-only~vision'],
    });
  });

  it('are shared by need sets that the same engines meet, under the name of the smallest', () => {
    const gdpr = need('gdpr', { kind: 'path', prefix: '/eu/' }, { residency: ['eu'] });
    const { pools, modelNeeds } = poolsOfModel('m', engines, [eu, gdpr]);
    expect(pools.map(({ id }) => id)).toEqual(['m', 'm~eu-only']);
    expect(modelNeeds.poolIds).toEqual(['m', 'm~eu-only', 'm~eu-only', 'm~eu-only']);
  });

  it('lack combinations that nobody meets', () => {
    const never = need('too-long', { kind: 'promptTokens', above: 100 }, null);
    const us = need('us-only', header('us'), { residency: ['us'] });
    expect(poolsOfModel('m', engines, [eu, us, never]).modelNeeds.poolIds).toEqual([
      ...['m', 'm~eu-only', null, null],
      ...['m~us-only', null, null, null],
    ]);
  });

  it('lack combinations that no request can carry', () => {
    const tenant = (id: string, value: string) => need(id, { kind: 'tenant', value }, { hardware: ['h100'] });
    const idsOf = (...needs: Need[]) => poolsOfModel('m', engines, needs).modelNeeds.poolIds;
    expect(idsOf(tenant('t1', 'a'), tenant('t2', 'b'))).toEqual(['m', 'm~t1', 'm~t1', null]);
    expect(idsOf(tenant('t1', 'a'), tenant('t2', 'a'))).toEqual(['m', null, null, 'm~t1~t2']);
    const longer = (id: string, above: number) =>
      need(id, { kind: 'promptTokens', above }, { hardware: ['h100'] });
    expect(idsOf(longer('l1', 10), longer('l2', 20))).toEqual(['m', 'm~l1', null, 'm~l1']);
    const fuller = (id: string, above: number) =>
      need(id, { kind: 'totalTokens', above }, { hardware: ['h100'] });
    expect(idsOf(fuller('l1', 10), fuller('l2', 20))).toEqual(['m', 'm~l1', null, 'm~l1']);
    expect(idsOf(fuller('l1', 10), longer('l2', 10))).toEqual(['m', 'm~l1', null, 'm~l1']);
    expect(idsOf(longer('l1', 10), fuller('l2', 20))).toEqual(['m', 'm~l1', 'm~l1', 'm~l1']);
    const path = (id: string, prefix: string) => need(id, { kind: 'path', prefix }, { hardware: ['h100'] });
    expect(idsOf(path('p1', '/a'), path('p2', '/a/b'))).toEqual(['m', 'm~p1', null, 'm~p1']);
    expect(idsOf(path('p1', '/a'), path('p2', '/b'))).toEqual(['m', 'm~p1', 'm~p1', null]);
    const any = need('any', header(), { hardware: ['h100'] });
    expect(idsOf(any, eu)).toEqual(['m', 'm~any', null, 'm~any~eu-only']);
  });

  it('do not depend on needs that every engine of the model meets', () => {
    const all = need('all', { kind: 'path', prefix: '/' }, { hardware: ['a100', 'h100'] });
    expect(needsThatMatter('m', engines, [all, eu])).toEqual([eu]);
    expect(poolsOfModel('m', engines, [all]).modelNeeds.needs).toEqual([]);
  });

  it('are refused when more needs matter than filters can tell apart', () => {
    const many = Array.from({ length: 7 }, (_, at) => need(`n${at}`, header(`${at}`), { residency: ['eu'] }));
    expect(poolsOfModel('m', engines, many.slice(1)).modelNeeds.poolIds).toHaveLength(64);
    expect(() => poolsOfModel('m', engines, many)).toThrow(RangeError);
  });

  it('hold exactly the engines that meet every need carried, whatever the labels', () => {
    const labels = fc.record({ a: fc.constantFrom('1', '2', '3'), b: fc.constantFrom('1', '2') });
    const labelNeeds = fc.oneof(
      fc.constant(null),
      fc.record({ a: fc.uniqueArray(fc.constantFrom('1', '2', '3'), { minLength: 1 }) }),
      fc.record({ b: fc.uniqueArray(fc.constantFrom('1', '2'), { minLength: 1 }) }),
    );
    fc.assert(
      fc.property(
        fc.array(labels, { minLength: 1, maxLength: 6 }),
        fc.array(labelNeeds, { maxLength: 6 }),
        (all, wanted) => {
          const fleet = all.map((entry, at) => engine(`e${at}`, entry));
          // Headers may be sent twice, so that every combination can occur.
          const needs = wanted.map((entry, at) => need(`n${at}`, header(`${at}`), entry));
          const { pools, modelNeeds } = poolsOfModel('m', fleet, needs);
          for (let carried = 0; carried < 2 ** needs.length; carried++) {
            const ids = needs.filter((_, bit) => (carried >> bit) & 1);
            const eligible = fleet.filter((one) => ids.every((each) => meets(one, each))).map(({ id }) => id);
            const place = modelNeeds.needs.reduce(
              (sum, id, bit) => sum | (ids.some((each) => each.id === id) ? 1 << bit : 0),
              0,
            );
            const found = pools.find(({ id }) => id === modelNeeds.poolIds[place])?.engineIds ?? [];
            expect(found).toEqual(eligible);
          }
          expect(new Set(pools.map(({ engineIds }) => engineIds.join())).size).toBe(pools.length);
        },
      ),
    );
  });
});

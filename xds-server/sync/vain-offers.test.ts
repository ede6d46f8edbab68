import { expect, it } from 'vitest';
import { VainOffers } from './vain-offers.js';

it('a filter that takes what it is given is never kept waiting', () => {
  const offers = new VainOffers();
  for (let version = 0; version < 1_000; version++) {
    expect(offers.worth('e', version, version * 100)).toBe('new');
    offers.note('e', version, version * 100);
  }
});

it('one that holds on to its snapshot is given three, then one in ten seconds', () => {
  const offers = new VainOffers();
  const given: number[] = [];
  for (let ms = 0; ms < 60_000; ms += 500) {
    if (offers.worth('e', 7, ms) === 'vain') continue;
    offers.note('e', 7, ms);
    given.push(ms);
  }
  expect(given).toEqual([0, 500, 1_000, 11_000, 21_000, 31_000, 41_000, 51_000]);
});

it('a filter says nothing about another one of the same node, nor a node about another', () => {
  const offers = new VainOffers();
  for (let ms = 0; ms < 2_000; ms += 500) offers.note('e', 7, ms);
  expect(offers.worth('e', 7, 2_000)).toBe('vain');
  expect(offers.worth('e', 8, 2_000)).toBe('new');
  expect(offers.worth('f', 7, 2_000)).toBe('new');
});

it('what was offered long ago is forgotten', () => {
  const offers = new VainOffers();
  for (let ms = 0; ms < 2_000; ms += 500) offers.note('e', 7, ms);
  expect(offers.worth('e', 7, 60_000)).toBe('new');
});

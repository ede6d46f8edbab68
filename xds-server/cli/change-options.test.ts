import { describe, expect, it } from 'vitest';
import { demandOption, withoutOption } from './change-options.js';

describe('options of changes', () => {
  it('read engines and demands', () => {
    expect(withoutOption('engine=b', ['a'])).toEqual(['a', 'b']);
    expect(demandOption('west=+30%')).toEqual([{ frontendId: 'west', factor: 1.3 }]);
    expect(demandOption('west=-10%')).toEqual([{ frontendId: 'west', factor: 0.9 }]);
    expect(demandOption('west/org/m=120.5')).toEqual([
      { frontendId: 'west', poolId: 'org/m', requestsPerSecond: 120.5 },
    ]);
    for (const wrong of ['b', 'replica=b', 'engine='])
      expect(() => withoutOption(wrong)).toThrow('engine=ID');
    for (const wrong of ['west=30%', 'west=', '=1', 'west=-5'])
      expect(() => demandOption(wrong)).toThrow('expected');
    expect(() => demandOption('west=-120%')).toThrow('demand cannot fall by more than 100 %');
  });
});

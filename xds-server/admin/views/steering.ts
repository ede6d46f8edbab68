/** Of which share of the keys decisions are followed; nothing to say when it is all. */
export function steeringText(steered: number): string {
  if (steered >= 1) return '';
  if (steered <= 0)
    return 'nothing is steered (policy.mode or policy.steerPercent): decisions are only observed';
  return `${Number((steered * 100).toPrecision(4))} % of the keys are steered (policy.steerPercent), the others are only observed`;
}

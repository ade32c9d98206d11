import { isUnknown } from '../../core/measures/spend.ts';
import type { RunSpend } from '../../workflows/messages.ts';
import { usd } from './format.ts';

/** `$0.0123 of $2.00 · forecast $0.2000 · not seen by the cap: teacher_sample (no price)` */
export function spendText(spend: RunSpend): string {
  const cap = spend.maxUsd === null ? ', no cap' : ` of ${usd(spend.maxUsd)}`;
  const forecast = spend.forecastUsd === null || isUnknown(spend) ? '' : ` · forecast ${usd(spend.forecastUsd)}`;
  const unseen = spend.maxUsd === null ? 'not counted' : 'not seen by the cap';
  const blind = spend.blindTo.length === 0 ? '' : ` · ${unseen}: ${spend.blindTo.join(', ')} (no price)`;
  return `${isUnknown(spend) ? 'unknown' : usd(spend.usd)}${cap}${forecast}${blind}`;
}

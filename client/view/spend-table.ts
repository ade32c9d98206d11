import { isUnknown } from '../../core/measures/spend.ts';
import type { RunSpend } from '../../workflows/messages.ts';
import type { Colors } from '../console.ts';
import { usd } from './format.ts';
import { meterTable, pricedSum } from './meter-table.ts';
import { wrapped } from './wrap.ts';

/** What a run has spent, by meter, with its cap, its forecast and what the cap cannot see; within 80 columns. */
export function spendTable(spend: RunSpend, colors: Colors): string {
  const lines = spend.lines.length === 0 ? [] : [meterTable('spend by meter', spend.lines, colors)];
  const sums = [spentText(spend), reservedText(spend), capText(spend), forecastText(spend), lostText(spend)].filter((text) => text !== '');
  return [...lines, ...sums.map((text) => wrapped(text))].join('\n');
}

const spentText = ({ usd: pricedUsd, lines }: RunSpend) =>
  lines.length === 0 ? 'Spent: nothing yet.' : `Spent: ${pricedSum(pricedUsd, lines)}.`;

const reservedText = ({ reservedUsd }: RunSpend) => (reservedUsd > 0 ? `Set aside for trials under way: up to ${usd(reservedUsd)}.` : '');

const lostText = ({ lostCalls }: RunSpend) =>
  lostCalls > 0 ? `Lost calls: ${lostCalls}, charged at the most that they may have cost.` : '';

function capText({ maxUsd, blindTo }: RunSpend): string {
  const blind = blindTo.join(', ');
  const noPrice = blindTo.length === 1 ? 'it has no price' : 'they have no price';
  if (maxUsd === null) return blind === '' ? 'No cap is set.' : `No cap is set, and ${blind} cannot be counted: ${noPrice}.`;
  return `Cap: ${usd(maxUsd)}.${blind === '' ? '' : ` It cannot see ${blind}: ${noPrice}.`}`;
}

/** Nothing is forecast before the first step. */
function forecastText(spend: RunSpend): string {
  const { forecastUsd, maxUsd, blindTo } = spend;
  if (forecastUsd === null) return '';
  if (isUnknown(spend)) return 'Forecast: unknown.';
  const above = maxUsd !== null && forecastUsd > maxUsd ? ', above the cap' : '';
  return `Forecast: ${usd(forecastUsd)} at the end${above}${blindTo.length === 0 ? '' : ', without what has no price'}.`;
}

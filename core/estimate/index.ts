export { type CostEstimate, EstimateError, estimateCost, estimateTrialUsd, type SplitSizes } from './cost.ts';
export { forecastUsd } from './forecast.ts';

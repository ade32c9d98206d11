export { type CostEstimate, EstimateError, estimateCost, type SplitSizes } from './cost.ts';
export { forecastUsd } from './forecast.ts';

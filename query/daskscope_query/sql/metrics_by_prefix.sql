-- reads: fine_metrics
-- One cluster's fine performance metrics summed over its spans, those of a unit together (without one last), greatest first.
SELECT context, prefix, activity, unit, sum(finite(value)) AS value
FROM fine_metrics
WHERE cluster = $cluster
GROUP BY context, prefix, activity, unit
ORDER BY unit = '', unit, value DESC, context, prefix, activity
LIMIT $limit OFFSET $offset

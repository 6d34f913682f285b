-- reads: fine_metrics
-- One cluster's fine performance metrics, those of a unit together (without one last), greatest first; `span` narrows them.
SELECT span, context, prefix, activity, unit, sum(finite(value)) AS value
FROM fine_metrics
WHERE cluster = $cluster AND ($span::VARCHAR IS NULL OR span = $span)
GROUP BY span, context, prefix, activity, unit
ORDER BY unit = '', unit, value DESC, span, context, prefix, activity
LIMIT $limit OFFSET $offset

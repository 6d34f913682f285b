-- reads: fine_metrics, catalog
-- Fine performance metrics of one cluster or of an account, summed over spans, those of a unit together (without one
-- last), greatest first. `since` takes those that grew after it, `prefix` those of one, `user` those of clusters that are
-- theirs in `catalog`. Each is a total over the life of its cluster.
SELECT context, prefix, activity, unit, sum(finite(value)) AS value, count(DISTINCT cluster) AS n_clusters
FROM fine_metrics
WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
  AND ($user::VARCHAR IS NULL OR cluster IN (SELECT cluster FROM catalog WHERE "user" = $user))
  AND ($prefix::VARCHAR IS NULL OR prefix = $prefix)
  AND ($since::TIMESTAMPTZ IS NULL OR "at" >= $since)
GROUP BY context, prefix, activity, unit
ORDER BY unit = '', unit, value DESC, context, prefix, activity
LIMIT $limit OFFSET $offset

-- reads: deaths, catalog
-- A team's workers that went, latest first, with user and name of the cluster; `user`, `expected`, `since` and `until`
-- narrow them. The lines that they logged are for a single cluster's deaths.
SELECT d.*, c.name AS cluster_name, c."user"
FROM deaths d
LEFT JOIN catalog c USING (cluster)
WHERE ($user::VARCHAR IS NULL OR c."user" = $user)
  AND ($expected::BOOLEAN IS NULL OR d.expected = $expected)
  AND ($since::TIMESTAMPTZ IS NULL OR d.died_at >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR d.died_at <= $until)
ORDER BY d.died_at DESC, d.cluster, d.boot DESC, d.no DESC
LIMIT $limit OFFSET $offset

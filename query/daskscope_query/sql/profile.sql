-- reads: profiles, catalog
-- What the workers of one cluster or of an account were doing: each stack once, heaviest first. `by`
-- ('prefix', 'user') keeps apart those of two; whose a cluster is stands in `catalog`. `user`, `boot` and `prefixes`
-- narrow them, `since` and `until` take the intervals that have a part between them. A stack without frames
-- is what a worker or the plugin left out.
SELECT
    CASE $by::VARCHAR WHEN 'prefix' THEN p.prefix WHEN 'user' THEN c."user" END AS key,
    p.stack,
    capped(sum(p.count)) AS count,
    capped(sum(capped(p.count::HUGEINT * p.sample_us))) AS sampled_us
FROM profiles p
LEFT JOIN catalog c USING (cluster)
WHERE ($cluster::VARCHAR IS NULL OR p.cluster = $cluster)
  AND ($user::VARCHAR IS NULL OR c."user" = $user)
  AND len(p.stack) > 0
  AND ($boot::VARCHAR IS NULL OR p.boot = $boot)
  AND ($prefixes::VARCHAR[] IS NULL OR list_contains($prefixes::VARCHAR[], p.prefix))
  AND ($since::TIMESTAMPTZ IS NULL OR p.to_at > $since)
  AND ($until::TIMESTAMPTZ IS NULL OR p.from_at < $until)
GROUP BY 1, p.stack
ORDER BY sampled_us DESC, 1, p.stack
LIMIT $limit OFFSET $offset

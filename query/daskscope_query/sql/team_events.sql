-- reads: events, catalog
-- A team's events, latest first, with user and name of the cluster; `user`, `topic`, `since` and `until` narrow them.
SELECT e.*, c.name AS cluster_name, c."user"
FROM events e
LEFT JOIN catalog c USING (cluster)
WHERE ($user::VARCHAR IS NULL OR c."user" = $user)
  AND ($topic::VARCHAR IS NULL OR e.topic = $topic)
  AND ($since::TIMESTAMPTZ IS NULL OR e.logged_at >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR e.logged_at <= $until)
ORDER BY e.logged_at DESC, e.cluster, e.boot DESC, e.no DESC
LIMIT $limit OFFSET $offset

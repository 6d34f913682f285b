-- reads: exceptions_daily
-- A team's exceptions by kind, most frequent first; `user` narrows them. `n_clusters` counts a cluster on each of its days.
SELECT
    type,
    text,
    prefix,
    list(DISTINCT "user" ORDER BY "user") FILTER ("user" IS NOT NULL) AS users,
    capped(sum(n_clusters)) AS n_clusters,
    capped(sum(count)) AS count,
    min(day) AS first_day,
    max(day) AS last_day
FROM exceptions_daily
WHERE $user::VARCHAR IS NULL OR "user" = $user
GROUP BY type, text, prefix
ORDER BY count DESC, type, text, prefix
LIMIT $limit OFFSET $offset

"""The journal as one page of pictures: gathered, drawn with matplotlib, laid out as self-contained HTML."""

from warptile.report.page import page
from warptile.report.pictures import Picture, pictures_of

__all__ = ["Picture", "page", "pictures_of"]
